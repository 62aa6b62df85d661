package feed

import (
	"context"
	"time"
)

// notify is the notifier's goroutine.
func (f *Feed) notify() {
	var machine notifier
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		send := false
		select {
		case <-f.ctx.Done():
			return
		case <-f.written:
			send = machine.committed(time.Now())
		case <-timer.C:
			send = machine.tick(time.Now())
		}
		if send {
			_, err := timed(f.ctx, "notify", func(ctx context.Context) (struct{}, error) { return struct{}{}, f.source.Notify(ctx) })
			f.hasNotified(err, machine.retry == 0)
			select {
			case <-f.written: // while it was under way
				machine.committed(time.Now())
			default:
			}
			machine.sent(err == nil, time.Now())
		}
		if !machine.due.IsZero() {
			timer.Reset(time.Until(machine.due))
		}
	}
}

func (f *Feed) hasNotified(err error, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Notifies++
	if err != nil {
		f.stats.NotifyFailures++
		if first && f.ctx.Err() == nil {
			f.log.Warn("the other processes can not be woken; they poll", "error", err)
		}
	}
}

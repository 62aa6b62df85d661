package feed

import "time"

// Times of the notifier (storage.md §6).
const (
	notifyGap   = 5 * time.Millisecond
	notifyRetry = 50 * time.Millisecond
	notifyMost  = time.Second
)

// notifier decides when a wake-up is sent: at once when alone, at most every notifyGap, and again where a
// commit came while one was under way. A failure fails no write: the others poll.
type notifier struct {
	sending bool
	again   bool
	last    time.Time // when the last wake-up was sent
	due     time.Time // when the next one is; zero: none
	retry   time.Duration
}

// committed says that something was written; send tells to send now.
func (n *notifier) committed(now time.Time) (send bool) {
	switch {
	case n.sending:
		n.again = true
	case n.due.IsZero():
		if n.due = n.last.Add(notifyGap); n.due.Before(now) {
			n.due = now
		}
	}
	return n.tick(now)
}

// tick says that it is now; send tells to send.
func (n *notifier) tick(now time.Time) (send bool) {
	if n.sending || n.due.IsZero() || now.Before(n.due) {
		return false
	}
	n.sending, n.due, n.last = true, time.Time{}, now
	return true
}

// sent says how a wake-up ended. due then is when the next one is.
func (n *notifier) sent(ok bool, now time.Time) {
	n.sending = false
	switch {
	case !ok:
		n.retry = min(max(2*n.retry, notifyRetry), notifyMost)
		n.due = now.Add(n.retry)
	case n.again:
		n.retry, n.due = 0, n.last.Add(notifyGap)
	default:
		n.retry = 0
	}
	n.again = false
}

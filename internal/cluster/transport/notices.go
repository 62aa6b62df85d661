package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	noticePause = time.Minute
	maxNotices  = 256
)

// notices keeps a peer that comes again and again from filling the log: one line a minute for each
// subject, with the number of those left out.
type notices struct {
	mu   sync.Mutex
	last map[string]*notice
}

type notice struct {
	at      time.Time
	omitted int
}

func (n *notices) warn(log *slog.Logger, subject, message string, args ...any) {
	n.mu.Lock()
	if n.last == nil {
		n.last = map[string]*notice{}
	}
	at := n.last[subject]
	if at == nil {
		if len(n.last) >= maxNotices {
			clear(n.last)
		}
		at = &notice{}
		n.last[subject] = at
	}
	now := time.Now()
	if !at.at.IsZero() && now.Sub(at.at) < noticePause {
		at.omitted++
		n.mu.Unlock()
		return
	}
	omitted := at.omitted
	*at = notice{at: now}
	n.mu.Unlock()
	if omitted > 0 {
		args = append(args, "omitted", omitted)
	}
	log.Log(context.Background(), slog.LevelWarn, message, args...)
}

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
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]*notice
}

type notice struct {
	at      int64
	omitted int
}

func (n *notices) warn(now int64, subject, message string, args ...any) {
	n.mu.Lock()
	if n.last == nil {
		n.last = map[string]*notice{}
	}
	at := n.last[subject]
	if at == nil {
		if len(n.last) >= maxNotices {
			clear(n.last)
		}
		at = &notice{at: now - int64(noticePause)}
		n.last[subject] = at
	}
	if now-at.at < int64(noticePause) {
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
	n.log.Log(context.Background(), slog.LevelWarn, message, args...)
}

// refused logs a dial that ended in the handshake; other failures are the failure detector's matter.
func (n *notices) refused(now int64, err *DialError) {
	if dialReason(err) == Refused {
		n.warn(now, "dial "+err.Peer.Name, "refused to talk to a silo", "silo", err.Peer.Name, "addr", err.Peer.Addr, "error", err.Cause)
	}
}

// turnedAway logs a connection that was refused.
func (n *notices) turnedAway(now int64, host, remote string, err error) {
	n.warn(now, "serve "+host, "refused a connection of a silo", "remote", remote, "error", err)
}

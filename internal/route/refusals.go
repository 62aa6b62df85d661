package route

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// retryHint is when a refused caller may try again.
const retryHint = time.Second

// failure is a refusal as its sender gets it (architecture.md, decision 2).
func failure(d *hub.Delivery, r cluster.Refusal) *message.Failure {
	to := d.Target()
	f := &message.Failure{Type: message.ShuttingDown, Target: to.Path(), AnsweredBy: r.By, RetryAfter: retryHint}
	switch r.Reason {
	case cluster.NoEntry:
		f.Reason, f.TargetUnserved = message.ReasonNoEntry, true
		f.Message = fmt.Sprintf("Directed delivery to pod hub '%s' was refused: no silo in this cluster is currently serving that hub; nothing was queued", to)
	case cluster.Released:
		f.Type, f.Reason, f.TargetUnserved, f.RetryAfter = message.NotFound, message.ReasonReleased, true, 0
		f.Message = fmt.Sprintf("'%s' was released by its owner %v ago; nothing was queued", to, r.Age.Round(time.Millisecond))
	default:
		f.Reason = r.Reason.String()
		f.Message = fmt.Sprintf("'%s' was not reached: %s; nothing was queued, try again later", to, detail(r))
	}
	return f
}

func detail(r cluster.Refusal) string {
	text := r.Detail
	if text == "" {
		text = r.Reason.String()
	}
	if len(r.Missing) > 0 {
		text += " (no answer from " + strings.Join(r.Missing, ", ") + ")"
	}
	return text
}

// lost is the answer for a message that left this process and whose answer will not come, or has not come
// from a silo that is suspect.
func lost(by string, d *hub.Delivery, why error) *message.Failure {
	return &message.Failure{Type: message.ShuttingDown, Target: d.Target().Path(), AnsweredBy: by, Reason: message.ReasonLost, OutcomeUnknown: true, RetryAfter: retryHint,
		Message: fmt.Sprintf("no answer from '%s' after the message had been sent; whether it was executed is not known: %v", d.Target(), why), Cause: why}
}

// errPost is why a post is lost whose connection is.
var errPost = errors.New("the connection was lost")

const (
	// quietFor is how long after a refusal of an address the next ones are not warned of (C34).
	quietFor = 60 * time.Second
	// maxRefused bounds the addresses that are remembered for it. Those beyond share one warning.
	maxRefused = 4096
	// lookedOver bounds the remembered addresses that are looked over for one that can be forgotten.
	lookedOver = 8
)

// refusalLog tells which refusals are worth a warning: one an address in 60 s.
type refusalLog struct {
	mu     sync.Mutex
	at     map[string]*quiet
	queue  []string
	others quiet // of the addresses for which there is no room
}

type quiet struct {
	until      time.Duration
	suppressed int
}

// note counts a refusal. loud says that it is to be warned of, with how many were not.
func (l *refusalLog) note(addr string, now time.Duration) (suppressed int, loud bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[string]*quiet{}
	}
	q := l.at[addr]
	if q == nil {
		q = &l.others
		if l.room(now) {
			q = &quiet{}
			l.at[addr] = q
			l.queue = append(l.queue, addr)
		}
	}
	if now < q.until {
		q.suppressed++
		return 0, false
	}
	suppressed = q.suppressed
	q.until, q.suppressed = now+quietFor, 0
	return suppressed, true
}

// room forgets an address that is quiet no more, where too many are remembered; false where those that were looked
// at all are quiet.
func (l *refusalLog) room(now time.Duration) bool {
	if len(l.queue) < maxRefused {
		return true
	}
	for range lookedOver {
		oldest := l.queue[0]
		l.queue = l.queue[1:]
		if q := l.at[oldest]; now >= q.until {
			l.others.suppressed += q.suppressed
			delete(l.at, oldest)
			return true
		}
		l.queue = append(l.queue, oldest)
	}
	return false
}

// refuse answers a delivery that was not delivered, and says so in the log.
func (c *Cluster) refuse(d *hub.Delivery, r cluster.Refusal) {
	if r.By == "" {
		r.By = c.name
	}
	if carry := c.clientHosted[d.Target().Type()]; carry != nil && r.Reason == cluster.NoEntry {
		c.log.Info("No silo serves a client-hosted address: falling back to the stream publish", "address", d.Target().Path(), "operation", d.TypeName(), "delivery_id", d.ID())
		carry(d)
		return
	}
	f := failure(d, r)
	addr := d.Target().Path()
	suppressed, loud := c.refusals.note(addr, time.Duration(c.mesh.Clock().Now()))
	c.count.refused(r.Reason)
	c.note(addr, "refused", r.Reason.String(), r.By)
	line := c.log.Debug
	if loud {
		line = c.log.Warn
	}
	if r.Reason == cluster.NoEntry || r.Reason == cluster.Released {
		line(fmt.Sprintf("Directed delivery to pod hub '%s' was refused: no silo in this cluster is currently serving that hub", addr),
			"address", addr, "reason", r.Reason.String(), "answered_by", r.By, "operation", d.TypeName(), "delivery_id", d.ID(), "sender", d.Sender().String(), "suppressed", suppressed)
	} else {
		line("A delivery was refused: its target was not reached", "address", addr, "reason", r.Reason.String(), "answered_by", r.By, "detail", detail(r),
			"operation", d.TypeName(), "delivery_id", d.ID(), "sender", d.Sender().String(), "suppressed", suppressed)
	}
	c.mesh.Refuse(d, f)
}

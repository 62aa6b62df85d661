package route

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
)

// maxHistory is how many incidents of all addresses together are kept.
const maxHistory = 512

// Incident is a refusal of an address, or a repair of its claim.
type Incident struct {
	AgoMS      int64  `json:"agoMs"`
	What       string `json:"what"` // "refused", "claim made again", "stepped aside"
	Reason     string `json:"reason,omitempty"`
	AnsweredBy string `json:"answeredBy,omitempty"`
}

// history is the last incidents of a process. It is safe for concurrent use.
type history struct {
	mu   sync.Mutex
	ring [maxHistory]incident
	next int
}

type incident struct {
	addr string
	at   time.Duration
	Incident
}

func (h *history) note(addr string, at time.Duration, i Incident) {
	h.mu.Lock()
	h.ring[h.next%maxHistory] = incident{addr, at, i}
	h.next++
	h.mu.Unlock()
}

// of lists the incidents of an address, the newest first.
func (h *history) of(addr string, now time.Duration) (found []Incident) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := 1; k <= min(h.next, maxHistory); k++ {
		if i := h.ring[(h.next-k)%maxHistory]; i.addr == addr {
			i.AgoMS = (now - i.at).Milliseconds()
			found = append(found, i.Incident)
		}
	}
	return found
}

func (c *Cluster) note(addr, what, reason, by string) {
	c.past.note(addr, time.Duration(c.mesh.Clock().Now()), Incident{What: what, Reason: reason, AnsweredBy: by})
}

// History implements cluster.Historian.
func (c *Cluster) History(addr string) json.RawMessage {
	found := c.past.of(addr, time.Duration(c.mesh.Clock().Now()))
	if len(found) == 0 {
		return nil
	}
	b, err := json.Marshal(found)
	if err != nil {
		return nil
	}
	return b
}

var _ cluster.Historian = (*Cluster)(nil)

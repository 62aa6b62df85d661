package cluster

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Observation is what one silo has observed of an address, or why it did not say. It claims nothing else.
type Observation struct {
	Silo  string `json:"silo"`
	Epoch string `json:"epoch"`
	View  string `json:"view,omitempty"` // the key of its view
	// Role is why it was asked: "asker", "slot-owner", "holder".
	Role    string `json:"role"`
	TookMS  int64  `json:"tookMs"`
	Missing string `json:"missing,omitempty"` // set: it did not answer, and why
	Fired   string `json:"fired,omitempty"`   // set: the bound that has ended the wait for it
	Suspect bool   `json:"suspect,omitempty"` // the asker's judgement of it
	PongMS  *int64 `json:"lastPongMs,omitempty"`

	Slot    *SlotView    `json:"slot,omitempty"`    // where it owns the slot
	Claim   *claim.State `json:"claim,omitempty"`   // where it has a registration of the address
	Serving bool         `json:"serving,omitempty"` // it serves the address
	// Hub is the hub as its own process sees it, as JSON; absent where there is none.
	Hub json.RawMessage `json:"hub,omitempty"`
	// Recent are the last refusals and repairs of the address that the silo has seen, as JSON.
	Recent json.RawMessage `json:"recent,omitempty"`
}

// SlotView is the slot of an address as its owner sees it.
type SlotView struct {
	Number  int      `json:"number"`
	Settled bool     `json:"settled"`
	Waiting []string `json:"waiting,omitempty"` // members that have not told what they serve there
	Entry   *Holder  `json:"entry,omitempty"`   // who serves the address
	Closed  *int64   `json:"releasedMsAgo,omitempty"`
}

// Holder is a directory entry for people.
type Holder struct {
	Silo         string `json:"silo"`
	Epoch        string `json:"epoch"`
	Registration uint64 `json:"registration"`
	Unsure       bool   `json:"unsure,omitempty"` // granted while a member could not be asked
}

// Explanation is what the cluster's silos have observed of one address.
type Explanation struct {
	Address      string        `json:"address"`
	AskedBy      string        `json:"askedBy"`
	View         string        `json:"view"`
	Members      []string      `json:"members"`
	SlotOwner    string        `json:"slotOwner,omitempty"`
	Observations []Observation `json:"observations"`
}

// Describer tells of a hub of its process as JSON, or nil where there is none. It is called on the turn.
type Describer interface {
	Describe(addr string) json.RawMessage
}

// Historian tells of what has happened to an address as JSON, or nil where nothing has. It is called on the turn.
type Historian interface {
	History(addr string) json.RawMessage
}

// Explain asks this silo, the owner of the address's slot and whoever that one names what they have
// observed. done is called once, on the turn.
func (s *Silo) Explain(addr string, done func(Explanation)) {
	x := Explanation{Address: addr, AskedBy: s.name(), View: s.view.Key().String()}
	for _, m := range s.view.Members() {
		x.Members = append(x.Members, m.String())
	}
	x.Observations = append(x.Observations, s.observe(addr, "asker"))
	owner, ok := s.table.OwnerOf(addr)
	if !ok || s.self == 0 {
		done(x)
		return
	}
	x.SlotOwner = owner.Name
	s.askFor(addr, owner, "slot-owner", func(o Observation) {
		x.Observations = append(x.Observations, o)
		var holder *Holder
		if o.Slot != nil {
			holder = o.Slot.Entry
		}
		for _, m := range s.view.Members() {
			if holder != nil && m.Epoch.String() == holder.Epoch && m.Epoch != owner.Epoch && m.Epoch != s.self {
				s.askFor(addr, m, "holder", func(o Observation) {
					x.Observations = append(x.Observations, o)
					done(x)
				})
				return
			}
		}
		done(x)
	})
}

// askFor asks a silo for its observation, this one included.
func (s *Silo) askFor(addr string, m membership.Member, role string, done func(Observation)) {
	begin := s.clock.Now()
	s.Ask(m, wire.Explain{Addr: addr}, s.config.Observe, func(a wire.Answer, err error) {
		o := Observation{Silo: m.Name, Epoch: m.Epoch.String(), Role: role}
		text, ok := a.(wire.Explained)
		switch {
		case err != nil:
			o.Missing, o.Fired = s.unobserved(begin, err)
		case !ok:
			o.Missing = "it answered something else"
		default:
			if err := json.Unmarshal([]byte(text.Observation), &o); err != nil {
				o.Missing = err.Error()
			}
		}
		o.Role, o.TookMS = role, (s.clock.Now() - begin).Milliseconds()
		o.Suspect = s.Detector.Suspected(m.Epoch)
		if age, ok := s.Detector.Age(m.Epoch); ok {
			ms := age.Milliseconds()
			o.PongMS = &ms
		}
		done(o)
	})
}

// unobserved says why a silo that was asked at begin did not answer, and which bound has fired where one has.
func (s *Silo) unobserved(begin time.Duration, err error) (why, fired string) {
	if s.clock.Now()-begin < s.config.Observe {
		return err.Error(), ""
	}
	return fmt.Sprintf("%v (bound '%s', %v)", err, budget.Observe, s.config.Observe), budget.Observe.String()
}

// explainTo answers another silo, or this one.
func (s *Silo) explainTo(addr string) wire.Answer {
	if addr == "" {
		return wire.Explained{Observation: string(s.report())}
	}
	b, err := json.Marshal(s.observe(addr, ""))
	if err != nil {
		b = []byte(`{"missing":"its observation can not be written"}`)
	}
	return wire.Explained{Observation: string(b)}
}

func (s *Silo) observe(addr, role string) Observation {
	o := Observation{Silo: s.name(), Epoch: s.self.String(), View: s.view.Key().String(), Role: role}
	n := directory.SlotOf(addr, s.config.Directory.Slots)
	if st := s.Owner.Slot(n); st.Owned {
		o.Slot = &SlotView{Number: n, Settled: st.Settled}
		for _, e := range st.Waiting {
			m, _ := s.view.Member(e)
			o.Slot.Waiting = append(o.Slot.Waiting, m.Name)
		}
		if e, ok := s.Owner.Entry(addr); ok {
			m, _ := s.view.Member(e.Epoch)
			o.Slot.Entry = &Holder{Silo: m.Name, Epoch: e.Epoch.String(), Registration: e.Reg, Unsure: e.Unsure}
		}
		if age, ok := s.Owner.Closed(addr); ok {
			ms := age.Milliseconds()
			o.Slot.Closed = &ms
		}
	}
	if st, ok := s.Claims.State(addr); ok {
		o.Claim = &st
		o.Serving = st.Phase == "granted"
	}
	if _, ok := s.host.Serving(addr); ok {
		o.Serving = true
	}
	if d, ok := s.parts.Host.(Describer); ok {
		o.Hub = d.Describe(addr)
	}
	if h, ok := s.parts.Host.(Historian); ok {
		o.Recent = h.History(addr)
	}
	return o
}

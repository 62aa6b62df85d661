package cluster

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Status is what one silo observes of itself and, as it sees them, of the others.
type Status struct {
	Silo      string           `json:"silo"`
	Epoch     string           `json:"epoch"` // zeros while it is in no view
	Addr      string           `json:"addr"`
	Phase     string           `json:"phase"` // joining, up, leaving, left
	Isolated  bool             `json:"isolated,omitempty"`
	View      string           `json:"view"`
	Members   []MemberStatus   `json:"members"`
	Slots     SlotCounts       `json:"slots"`
	Claims    claim.Counts     `json:"claims"`
	Directory directory.Counts `json:"directory"` // sums since the start, as the owner of slots
	Resolve   Counts           `json:"resolve"`   // sums since the start
}

// MemberStatus is one member of a silo's view as that silo judges it.
type MemberStatus struct {
	Silo    string `json:"silo"`
	Epoch   string `json:"epoch"`
	Addr    string `json:"addr"`
	Leaving bool   `json:"leaving,omitempty"`
	Suspect bool   `json:"suspect,omitempty"`
	PongMS  *int64 `json:"lastPongMs,omitempty"`
	// NodeHubs is how many node hubs it serves, by its last pong; absent where that is not known.
	NodeHubs *int     `json:"nodeHubs,omitempty"`
	Types    []string `json:"nodeTypes,omitempty"` // that it handles; absent: all
}

// SlotCounts are the slots of the directory, and what this silo holds of it.
type SlotCounts struct {
	Total   int `json:"total"`
	Owned   int `json:"owned"`
	Settled int `json:"settled"` // of those owned
	Entries int `json:"entries"` // in those owned
}

// Status describes this silo.
func (s *Silo) Status() Status {
	owned, settled := s.Owner.Owned()
	st := Status{Silo: s.name(), Epoch: s.self.String(), Addr: s.parts.Me.Addr, Phase: s.Member.Phase().String(), Isolated: s.self != 0 && s.Isolated(), View: s.view.Key().String(),
		Slots:  SlotCounts{Total: s.config.Directory.Slots, Owned: owned, Settled: settled, Entries: s.Owner.Size()},
		Claims: s.Claims.Counts(), Directory: s.Owner.Counts(), Resolve: s.counts, Members: []MemberStatus{}}
	for _, m := range s.view.Members() {
		is := MemberStatus{Silo: m.Name, Epoch: m.Epoch.String(), Addr: m.Addr, Leaving: m.Leaving, Suspect: s.Detector.Suspected(m.Epoch), Types: m.Types}
		if age, ok := s.Detector.Age(m.Epoch); ok {
			ms := age.Milliseconds()
			is.PongMS = &ms
		}
		load, known := s.Detector.Load(m.Epoch)
		if m.Epoch == s.self {
			load, known = s.host.Load(), true
		}
		if known {
			is.NodeHubs = &load
		}
		st.Members = append(st.Members, is)
	}
	return st
}

// Reporter tells of its process as JSON. It is called on the turn.
type Reporter interface {
	Report() json.RawMessage
}

func (s *Silo) report() json.RawMessage {
	if r, ok := s.parts.Host.(Reporter); ok {
		return r.Report()
	}
	b, err := json.Marshal(s.Status())
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}

// SiloReport is what one silo has reported of itself, or why it did not.
type SiloReport struct {
	Silo    string          `json:"silo"`
	Epoch   string          `json:"epoch"`
	TookMS  int64           `json:"tookMs"`
	Missing string          `json:"missing,omitempty"` // set: it did not answer, and why
	Fired   string          `json:"fired,omitempty"`   // set: the bound that has ended the wait for it
	Status  json.RawMessage `json:"status,omitempty"`
}

// Survey asks every member of the view for its report, this silo included, by name. done is called once, on
// the turn. A silo in no view reports for itself alone.
func (s *Silo) Survey(done func([]SiloReport)) {
	members := s.view.Members()
	if s.self == 0 {
		done([]SiloReport{{Silo: s.name(), Epoch: s.self.String(), Status: s.report()}})
		return
	}
	open := len(members)
	var all []SiloReport
	for _, m := range members {
		s.reportOf(m, func(r SiloReport) {
			if all = append(all, r); len(all) < open {
				return
			}
			slices.SortFunc(all, func(a, b SiloReport) int { return cmp.Compare(a.Silo, b.Silo) })
			done(all)
		})
	}
}

func (s *Silo) reportOf(m membership.Member, done func(SiloReport)) {
	begin := s.clock.Now()
	s.Ask(m, wire.Explain{}, s.config.Observe, func(a wire.Answer, err error) {
		r := SiloReport{Silo: m.Name, Epoch: m.Epoch.String(), TookMS: (s.clock.Now() - begin).Milliseconds()}
		text, ok := a.(wire.Explained)
		switch {
		case err != nil:
			r.Missing, r.Fired = s.unobserved(begin, err)
		case !ok || !json.Valid([]byte(text.Observation)):
			r.Missing = "it answered something else"
		default:
			r.Status = json.RawMessage(text.Observation)
		}
		done(r)
	})
}

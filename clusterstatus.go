package hubmesh

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/route"
)

// clusterStatus is what the silos say of themselves.
type clusterStatus struct {
	Cluster    bool                 `json:"cluster"` // false: this process is no silo
	AskedBy    string               `json:"askedBy"`
	ObservedAt time.Time            `json:"observedAt"`
	Answered   int                  `json:"answered"`
	Missing    []string             `json:"missing"` // silos that did not answer, each with the reason
	Totals     clusterTotals        `json:"totals"`  // over those that answered
	Silos      []cluster.SiloReport `json:"silos"`
	Process    *processStatus       `json:"process,omitempty"` // of a process that is no silo
	// AsKnown says that permissions can not be determined for the moment, and by what this was answered.
	AsKnown string `json:"asKnown,omitempty"`
}

// clusterTotals are sums over silos.
type clusterTotals struct {
	Slots    cluster.SlotCounts `json:"slots"`
	Claims   claimTotals        `json:"claims"`
	Refusals map[string]int64   `json:"refusals"`
	// Placements are of node hubs on other silos than their callers'.
	Placements map[string]int64 `json:"placements"`
	Repairs    map[string]int64 `json:"repairs"`
	FeedLag    int64            `json:"feedLagMs"` // the greatest
}

type claimTotals struct {
	Processes       int `json:"processes"`
	ProcessesLanded int `json:"processesLanded"`
	Claiming        int `json:"claiming"`
	Granted         int `json:"granted"`
}

// processStatus is what a process tells of itself beside its part in the cluster.
type processStatus struct {
	ID   string      `json:"id"`
	Hubs int64       `json:"hubs"`
	Asks int64       `json:"asksPending"`
	Feed *feedStatus `json:"feed,omitempty"` // of a shared database
	// Search is the text index of a shared database.
	Search *searchStatus `json:"search,omitempty"`
	Peers  []peer        `json:"peers,omitempty"`
}

type feedStatus struct {
	Live       bool  `json:"live"`
	LagMS      int64 `json:"lagMs"` // from the commit of the change told last to its being told
	Pending    int   `json:"pending"`
	Foreign    int64 `json:"foreign"`
	Resets     int64 `json:"resets"`
	Reconnects int64 `json:"reconnects"`
	Gaps       int64 `json:"gaps"`
}

// peer is a silo as the connections to it and from it are seen.
type peer struct {
	Silo       string            `json:"silo"`
	Epoch      string            `json:"epoch"`
	Connected  bool              `json:"connected"`
	Accepted   bool              `json:"accepted"`
	Suspect    bool              `json:"suspect,omitempty"`
	Pending    int               `json:"pending"`
	Calls      uint64            `json:"calls"`
	Lost       uint64            `json:"lost"`
	NotSent    map[string]uint64 `json:"notSent,omitempty"`
	Reconnects uint64            `json:"reconnects"`
}

// processStatus describes this process. It does not block.
func (m *Mesh) processStatus() any { return m.describe() }

func (m *Mesh) describe() processStatus {
	s := m.hubs.Stats()
	st := processStatus{ID: m.id, Hubs: int64(s.Hubs), Asks: int64(s.Pending)}
	if m.shared != nil {
		st.Feed, st.Search = describeFeed(m.shared.feed.Stats()), m.shared.describeSearch()
	}
	if m.silo != nil {
		for _, p := range m.silo.net.Peers() {
			one := peer{Silo: p.Name, Epoch: epochText(p.Epoch), Connected: p.Connected, Accepted: p.Accepted, Suspect: p.Suspect, Pending: p.Pending,
				Calls: p.Calls, Lost: p.Lost, Reconnects: p.Reconnects}
			for r, n := range p.Refused {
				if one.NotSent == nil {
					one.NotSent = map[string]uint64{}
				}
				one.NotSent[r.String()] = n
			}
			st.Peers = append(st.Peers, one)
		}
	}
	return st
}

func describeFeed(s feed.Stats) *feedStatus {
	return &feedStatus{Live: s.Live, LagMS: s.Relay.Lag.Milliseconds(), Pending: s.Relay.Pending, Foreign: s.Relay.Foreign, Resets: s.Relay.Resets, Reconnects: s.Reconnects, Gaps: s.Gaps}
}

// Cluster asks every silo for its status, for an Admin of the root scope. One that does not answer is named
// with the reason.
func (a inspectAPI) Cluster(ctx context.Context) (any, error) {
	m := a.m
	known, err := a.operator(ctx, m.nodes.Require(ctx, "", access.Administer))
	if err != nil {
		return nil, err
	}
	st := clusterStatus{AsKnown: known, AskedBy: m.id, ObservedAt: time.Now().UTC(), Missing: []string{}, Silos: []cluster.SiloReport{},
		Totals: clusterTotals{Refusals: map[string]int64{}, Placements: map[string]int64{}, Repairs: map[string]int64{}}}
	if m.silo == nil {
		own := m.describe()
		st.Process = &own
		return st, nil
	}
	st.Cluster, st.AskedBy = true, m.silo.me.Name
	all, err := m.silo.router.Survey(ctx)
	if err != nil {
		return nil, err
	}
	st.Silos = all
	for _, r := range all {
		if r.Missing != "" {
			st.Missing = append(st.Missing, r.Silo+": "+r.Missing)
			continue
		}
		st.Answered++
		st.Totals.add(r.Status)
	}
	return st, nil
}

// add adds a silo's report.
func (t *clusterTotals) add(text json.RawMessage) {
	var one struct {
		route.Status
		Process processStatus `json:"process"`
	}
	if json.Unmarshal(text, &one) != nil {
		return // a silo of another release tells something else
	}
	t.Slots.Total = one.Slots.Total
	t.Slots.Owned += one.Slots.Owned
	t.Slots.Settled += one.Slots.Settled
	t.Slots.Entries += one.Slots.Entries
	t.Claims.Processes += one.Claims.Processes
	t.Claims.ProcessesLanded += one.Claims.ProcessesLanded
	t.Claims.Claiming += one.Claims.Claiming
	t.Claims.Granted += one.Claims.Granted
	for k, n := range one.Placements {
		t.Placements[k] += n
	}
	for k, n := range one.Refusals {
		t.Refusals[k] += n
	}
	for k, n := range one.Repairs {
		t.Repairs[k] += n
	}
	if f := one.Process.Feed; f != nil {
		t.FeedLag = max(t.FeedLag, f.LagMS)
	}
}

func epochText(e uint64) string { return membership.Epoch(e).String() }

package route

import (
	"context"
	"encoding/json"

	"github.com/hubmesh/hubmesh/internal/cluster"
)

// Status is what a silo tells of itself: its part in the cluster, and what its router has counted.
type Status struct {
	cluster.Status
	Router RouterCounts `json:"router"`
	// Refusals are the deliveries that were not delivered, by reason: sums since the start.
	Refusals map[string]int64 `json:"refusals"`
	// Placements are the node hubs that were placed on another silo than their caller's, by why, and what became of
	// that: sums since the start.
	Placements map[string]int64 `json:"placements"`
	// Repairs are the sums of what mended the directory, by what it was.
	Repairs map[string]int64 `json:"repairs"`
	// Process is what the process adds about itself.
	Process any `json:"process,omitempty"`
}

// RouterCounts are sums since the start.
type RouterCounts struct {
	Sent       int64 `json:"sent"`       // deliveries that left for other silos
	Arrived    int64 `json:"arrived"`    // deliveries that came from them
	Lost       int64 `json:"lost"`       // deliveries that left and whose outcome is not known
	Landed     int64 `json:"landed"`     // claims of process hubs, the first landing of each
	NotLanding int64 `json:"notLanding"` // claims that did not land within their initial budget
	MadeAgain  int64 `json:"madeAgain"`  // claims that were lost
}

// Refusals lists the reasons for which a router refuses, in order.
func Refusals() []cluster.Reason {
	return []cluster.Reason{cluster.NoEntry, cluster.Released, cluster.Unknown, cluster.Starting, cluster.Stopping, cluster.Overloaded, cluster.NoSilo}
}

// Status describes this silo.
func (c *Cluster) Status() (st Status) {
	c.turn.Do(func() { st = c.status() })
	return st
}

// status is Status on the turn.
func (c *Cluster) status() Status {
	n := &c.count
	st := Status{Status: c.silo.Status(), Refusals: map[string]int64{},
		Router: RouterCounts{Sent: n.sent.Load(), Arrived: n.arrived.Load(), Lost: n.lost.Load(), Landed: n.landed.Load(), NotLanding: n.notLanding.Load(), MadeAgain: n.madeAgain.Load()}}
	for _, r := range Refusals() {
		st.Refusals[r.String()] = n.refusedFor[r].Load()
	}
	st.Placements, st.Repairs = placements(st.Resolve.Placements), Repairs(st)
	return st
}

// Repairs are the sums of what mended the directory: claims that were lost and made again, entries that a
// locate brought back, entries that were found to be stale, slots that were settled by what their members or
// their former owner told, views that were exchanged.
func Repairs(st Status) map[string]int64 {
	d, r := st.Directory, st.Resolve
	return map[string]int64{
		"claims-made-again": st.Router.MadeAgain, "entries-restored": d.Restored, "entries-refuted": d.Refuted, "entries-pruned": d.Pruned,
		"slots-settled-by-members": d.SettledByAnswers, "slots-settled-by-hand-over": d.SettledByHandOver,
		"views-fetched": r.ViewsFetched, "views-pushed": r.ViewsPushed, "asked-everybody": r.AskedEverybody,
	}
}

func placements(p cluster.Placements) map[string]int64 {
	return map[string]int64{"by-type": p.ByType, "by-load": p.ByLoad, "by-leaving": p.ByLeaving,
		"failed": p.Failed, "no-silo": p.NoSilo, "taken": p.Taken, "handed-over": p.HandedOver}
}

// Report implements cluster.Reporter.
func (c *Cluster) Report() json.RawMessage {
	st := c.status()
	if c.process != nil {
		st.Process = c.process()
	}
	b, err := json.Marshal(st)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}

// Survey asks every silo of the view for its report. It ends with ctx.
func (c *Cluster) Survey(ctx context.Context) ([]cluster.SiloReport, error) {
	got := make(chan []cluster.SiloReport, 1)
	c.turn.Do(func() { c.silo.Survey(func(all []cluster.SiloReport) { got <- all }) })
	select {
	case all := <-got:
		return all, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Joined is closed once this silo stands in a view.
func (c *Cluster) Joined() <-chan struct{} { return c.joined }

// Waiting names what keeps this silo from serving as a member: nothing once it stands in a view and its first
// claims have landed there.
func (c *Cluster) Waiting() []string {
	if c.self.Load() == 0 {
		return []string{"joining the cluster"}
	}
	if c.settled.Load() {
		return nil
	}
	var n int
	c.turn.Do(func() {
		all := c.silo.Claims.Counts()
		n = all.Processes - all.ProcessesLanded
	})
	if n > 0 {
		return []string{"the claims of this silo"}
	}
	c.settled.Store(true)
	return nil
}

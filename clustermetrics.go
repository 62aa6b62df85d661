package hubmesh

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/route"
)

// families are metrics that are read from one snapshot at each scrape. Their labels come from tables of the
// program, or are the names of the members of the view.
type families struct {
	descs   map[string]*prometheus.Desc
	collect func(*families)
	out     chan<- prometheus.Metric // while a scrape runs
}

// family is one metric: its labels are given with each value.
type family struct {
	name, help string
	labels     []string
}

func newFamilies(list []family, collect func(*families)) *families {
	f := &families{descs: map[string]*prometheus.Desc{}, collect: collect}
	for _, m := range list {
		f.descs[m.name] = prometheus.NewDesc("hubmesh_"+m.name, m.help, m.labels, nil)
	}
	return f
}

// Describe implements prometheus.Collector.
func (f *families) Describe(out chan<- *prometheus.Desc) {
	for _, d := range f.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *families) Collect(out chan<- prometheus.Metric) {
	one := &families{descs: f.descs, collect: f.collect, out: out}
	one.collect(one)
}

func (f *families) count(name string, n int64, labels ...string) {
	f.out <- prometheus.MustNewConstMetric(f.descs[name], prometheus.CounterValue, float64(n), labels...)
}

func (f *families) gauge(name string, n float64, labels ...string) {
	f.out <- prometheus.MustNewConstMetric(f.descs[name], prometheus.GaugeValue, n, labels...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// feedFamilies are the metrics of the change feed of a shared database.
var feedFamilies = []family{
	{"feed_live", "1 while changes of other processes are heard as they are made; 0 also when none could be read for 5 s.", nil},
	{"feed_behind_seconds", "Since the beginning of the last read of changes that has had its effect; over 5 permissions are undetermined.", nil},
	{"feed_lag_seconds", "From the commit of the change that was told last to its being told.", nil},
	{"feed_pending", "Own changes whose row has not been read yet.", nil},
	{"feed_queue", "Paths that wait for a subscriber.", []string{"subscriber"}},
	{"feed_changes_total", "Changes that were told, by whose they are.", []string{"origin"}},
	{"feed_resets_total", "Times that everything may have changed.", nil},
	{"feed_reconnects_total", "Connections to the database that were made anew.", nil},
	{"feed_gaps_total", "Listening connections that were lost.", nil},
	{"feed_rows_total", "Change rows that were read.", nil},
	{"feed_notification_queue_ratio", "Used part of the database server's notification queue, 0 to 1, looked at every 10 s; none while it does not answer.", nil},
}

func (m *Mesh) feedMetrics() prometheus.Collector {
	return newFamilies(feedFamilies, func(f *families) {
		f.feed(m.shared.feed.Stats())
		if used := m.shared.queueUsed(); !math.IsNaN(used) {
			f.gauge("feed_notification_queue_ratio", used)
		}
	})
}

func (f *families) feed(s feed.Stats) {
	f.gauge("feed_live", truth(s.Live))
	f.gauge("feed_behind_seconds", s.Behind.Seconds())
	f.gauge("feed_lag_seconds", s.Relay.Lag.Seconds())
	f.gauge("feed_pending", float64(s.Relay.Pending))
	for name, n := range s.Relay.Queues {
		f.gauge("feed_queue", float64(n), name)
	}
	f.count("feed_changes_total", s.Relay.Published, "own")
	f.count("feed_changes_total", s.Relay.Foreign, "other")
	f.count("feed_resets_total", s.Relay.Resets)
	f.count("feed_reconnects_total", s.Reconnects)
	f.count("feed_gaps_total", s.Gaps)
	f.count("feed_rows_total", s.Rows)
}

// siloFamilies are the metrics of a silo.
var siloFamilies = []family{
	{"cluster_members", "Silos in the view, by state.", []string{"state"}},
	{"cluster_isolated", "1 while no peer has promised that this silo stays a member: reads of what it holds ask the membership.", nil},
	{"cluster_views_total", "Views that counted, and those exchanged with other silos.", []string{"how"}},
	{"cluster_slots", "Slots of the directory that this silo owns, by state.", []string{"state"}},
	{"cluster_entries", "Entries in the slots that this silo owns.", nil},
	{"cluster_claims", "Registrations of this silo, by state.", []string{"state"}},
	{"cluster_claim_events_total", "First landings, late ones and losses of claims.", []string{"event"}},
	{"cluster_lookups_total", "Questions to this silo as the owner of a slot, by answer.", []string{"answer"}},
	{"cluster_repairs_total", "What mended the directory.", []string{"repair"}},
	{"cluster_resolutions_total", "Targets that this silo looked for, and those found in its cache.", []string{"how"}},
	{"cluster_placements_total", "Node hubs that were placed on another silo than their caller's, by reason, and what became of that.", []string{"what"}},
	{"cluster_node_hubs", "Node hubs that each silo serves, as this one knows.", []string{"silo"}},
	{"cluster_deliveries_total", "Messages to and from other silos, and those whose outcome is unknown.", []string{"what"}},
	{"cluster_refusals_total", "Messages that were not delivered, by reason.", []string{"reason"}},
	{"cluster_peer_connected", "1 while the connection that this silo dialled is open.", []string{"silo"}},
	{"cluster_peer_suspect", "1 while a silo does not answer pings.", []string{"silo"}},
	{"cluster_peer_pending", "Requests to a silo without an answer.", []string{"silo"}},
	{"cluster_peer_queue_bytes", "Bytes that wait to be written to a silo.", []string{"silo"}},
	{"cluster_peer_calls_total", "Requests to a silo, by outcome.", []string{"silo", "outcome"}},
	{"cluster_peer_not_sent_total", "Requests to a silo that never left, by reason.", []string{"silo", "reason"}},
	{"cluster_peer_dials_total", "Connections that were tried, by outcome.", []string{"silo", "outcome"}},
	{"cluster_peer_bytes_total", "Bytes to and from a silo.", []string{"silo", "direction"}},
}

func (m *Mesh) siloMetrics() prometheus.Collector {
	return newFamilies(siloFamilies, func(f *families) {
		f.silo(m.silo.router.Status())
		f.peers(m.silo.net.Peers())
	})
}

func (f *families) silo(st route.Status) {
	var up, leaving, suspect int
	for _, one := range st.Members {
		switch {
		case one.Leaving:
			leaving++
		case one.Suspect:
			suspect++
		default:
			up++
		}
	}
	for _, one := range st.Members {
		if one.NodeHubs != nil {
			f.gauge("cluster_node_hubs", float64(*one.NodeHubs), one.Silo)
		}
	}
	for what, n := range st.Placements {
		f.count("cluster_placements_total", n, what)
	}
	f.gauge("cluster_members", float64(up), "up")
	f.gauge("cluster_members", float64(leaving), "leaving")
	f.gauge("cluster_members", float64(suspect), "suspect")
	f.gauge("cluster_isolated", truth(st.Isolated))
	f.count("cluster_views_total", st.Resolve.Views, "counted")
	f.count("cluster_views_total", st.Resolve.ViewsFetched, "fetched")
	f.count("cluster_views_total", st.Resolve.ViewsPushed, "pushed")
	f.gauge("cluster_slots", float64(st.Slots.Settled), "settled")
	f.gauge("cluster_slots", float64(st.Slots.Owned-st.Slots.Settled), "unsettled")
	f.gauge("cluster_entries", float64(st.Slots.Entries))
	f.gauge("cluster_claims", float64(st.Claims.ProcessesLanded), "process-landed")
	f.gauge("cluster_claims", float64(st.Claims.Processes-st.Claims.ProcessesLanded), "process-pending")
	f.gauge("cluster_claims", float64(st.Claims.Claiming), "node-claiming")
	f.gauge("cluster_claims", float64(st.Claims.Granted), "node-granted")
	f.count("cluster_claim_events_total", st.Router.Landed, "landed")
	f.count("cluster_claim_events_total", st.Router.NotLanding, "not-landing")
	f.count("cluster_claim_events_total", st.Router.MadeAgain, "made-again")
	f.count("cluster_lookups_total", st.Directory.Hits, "hit")
	f.count("cluster_lookups_total", st.Directory.Negatives, "negative")
	f.count("cluster_lookups_total", st.Directory.Unknowns, "unknown")
	for what, n := range st.Repairs {
		f.count("cluster_repairs_total", n, what)
	}
	f.count("cluster_resolutions_total", st.Resolve.Resolutions, "all")
	f.count("cluster_resolutions_total", st.Resolve.FromCache, "cache")
	f.count("cluster_deliveries_total", st.Router.Sent, "sent")
	f.count("cluster_deliveries_total", st.Router.Arrived, "arrived")
	f.count("cluster_deliveries_total", st.Router.Lost, "lost")
	for reason, n := range st.Refusals {
		f.count("cluster_refusals_total", n, reason)
	}
}

// peers tells of each silo by its name. Of two incarnations of one the newest counts, by whether it is connected.
func (f *families) peers(all []transport.PeerStats) {
	newest := map[string]transport.PeerStats{}
	for _, p := range all {
		if have, ok := newest[p.Name]; !ok || p.Connected || !have.Connected && p.Accepted {
			newest[p.Name] = p
		}
	}
	for name, p := range newest {
		f.gauge("cluster_peer_connected", truth(p.Connected), name)
		f.gauge("cluster_peer_suspect", truth(p.Suspect), name)
		f.gauge("cluster_peer_pending", float64(p.Pending), name)
		f.gauge("cluster_peer_queue_bytes", float64(p.QueueBytes), name)
		f.count("cluster_peer_calls_total", int64(p.Answered), name, "answered")
		f.count("cluster_peer_calls_total", int64(p.Late), name, "late")
		f.count("cluster_peer_calls_total", int64(p.Lost), name, "lost")
		for reason, n := range p.Refused {
			f.count("cluster_peer_not_sent_total", int64(n), name, reason.String())
		}
		f.count("cluster_peer_dials_total", int64(p.Dials-p.FailedDials), name, "opened")
		f.count("cluster_peer_dials_total", int64(p.FailedDials), name, "failed")
		f.count("cluster_peer_bytes_total", int64(p.BytesOut), name, "out")
		f.count("cluster_peer_bytes_total", int64(p.BytesIn), name, "in")
	}
}

package main

// mutant is one rule of the protocol taken out: text of a file replaced by another.
type mutant struct {
	name  string
	rule  string // what protocol.md or the issue calls it
	edits []edit
}

type edit struct{ file, old, new string }

const (
	claimFile   = "internal/cluster/claim/claimant.go"
	batchFile   = "internal/cluster/claim/batch.go"
	grantFile   = "internal/cluster/claim/grant.go"
	handleFile  = "internal/cluster/claim/handle.go"
	ownerFile   = "internal/cluster/directory/owner.go"
	peersFile   = "internal/cluster/directory/peers.go"
	claimsFile  = "internal/cluster/directory/claims.go"
	guardsFile  = "internal/cluster/directory/guards.go"
	locateFile  = "internal/cluster/directory/locate.go"
	laneFile    = "internal/route/lane.go"
	fenceFile   = "internal/route/fence.go"
	viewFile    = "internal/cluster/membership/view.go"
	siloFile    = "internal/cluster/membership/silo.go"
	permitFile  = "internal/cluster/membership/permit.go"
	resolveFile = "internal/cluster/resolve.go"
	placeFile   = "internal/cluster/placement.go"
)

var mutants = []mutant{
	{"claiming-does-not-park", "claiming does not park", []edit{
		{claimFile, "return wire.LocatedItem{Status: wire.Claiming, Reg: r.reg, Node: true}", "return wire.LocatedItem{Status: wire.None}"},
		{grantFile, "return r != nil && r.state == claiming", "return r != nil && false"},
	}},
	{"suspicion-is-stale-report", "suspicion counts as stale report", []edit{
		{laneFile, "		if d == Denied || d == Missing {\n", "		if d != Answered {\n"},
	}},
	{"unsettled-is-settled", "unsettled treated as settled", []edit{
		{claimsFile, "	if s.settled {\n		done(o.install(s, addr, e))", "	if true {\n		done(o.install(s, addr, e))"},
	}},
	{"no-order-no-guards", "no reg order / guards", []edit{
		{ownerFile, "if e.Reg > old.Reg {", "if true {"},
		{ownerFile, "e.Epoch == m.From && e.Reg <= it.Reg {", "e.Epoch == m.From {"},
		{guardsFile, "return ok && x.reg >= reg", "return ok && x.reg < 0"},
	}},
	{"locate-off", "locate off", []edit{
		{claimsFile, "	o.counts.Located++\n	self := o.self\n", "	if s.settled {\n		answer(o.located(n, m.Addr, Found{}))\n		return\n	}\n	answer(wire.Unknown{})\n	return\n	self := o.self\n"},
	}},
	{"tombstone-without-locate", "tombstone answers without locate", []edit{
		{claimsFile, "	o.counts.Located++\n	self := o.self\n", "	if age, closed := o.guards.closed(m.Addr, o.clock.Now()); closed {\n		answer(wire.Closed{Age: age})\n		return\n	}\n	self := o.self\n"},
	}},
	{"joiners-take-old-negatives", "joiners take old negatives", []edit{
		{locateFile, "	if r.found.Entry != nil {\n		for", "	if true {\n		for"},
	}},
	{"negatives-from-an-older-view", "negatives from an older view", []edit{
		{claimsFile, "if o.view.Key().Before(m.Key) {", "if false {"},
	}},
	{"two-votes-always", "plain two-vote rule", []edit{
		{siloFile, "return min(2, max(1, others))", "return 2"},
	}},
	{"no-timeline", "no timeline", []edit{
		{viewFile, "return cmp.Or(cmp.Compare(k.Timeline, o.Timeline), cmp.Compare(k.Number, o.Number))", "return cmp.Compare(k.Number, o.Number)"},
	}},
	{"no-lanes", "no lanes", []edit{
		{fenceFile, "lane <= x.lane {", "lane <= x.lane && lane == 0 {"},
		{laneFile, "	if l.state == draining && l.out == 0 {", "	if l.state == draining {"},
	}},
	{"no-fence", "no lanes, at the receiver only", []edit{
		{fenceFile, "lane <= x.lane {", "lane <= x.lane && lane == 0 {"},
	}},
	{"fences-go-early", "a fence stands as long as what it is for may be under way", []edit{
		{fenceFile, "fenceFor = 10 * time.Minute", "fenceFor = 10 * time.Millisecond"},
	}},
	{"guards-go-early", "the end of a registration is remembered for its time", []edit{
		{peersFile, "TombstoneFor: 10 * time.Minute, GuardFor: 30 * time.Second", "TombstoneFor: time.Millisecond, GuardFor: time.Millisecond"},
		{claimFile, "ClosedFor: 10 * time.Minute", "ClosedFor: time.Millisecond"},
	}},
	{"repeat-after-loss", "repeat after a lost connection", []edit{
		{laneFile, "	case Lost:\n		l.drain()\n		l.done = max(l.done, e.seq)\n		if !l.carrier.Over(e.m) {\n			l.carrier.Lose(e.m)\n		}\n	case Denied, Deferred, Unsent, Missing:", "	case Lost, Denied, Deferred, Unsent, Missing:"},
	}},
	{"no-claim-retry", "no claim retry", []edit{
		{batchFile, "	if len(again) == 0 && !unmarked {", "	if true {"},
	}},
	{"no-detach-retry", "no detach retry", []edit{
		{batchFile, "		if len(again) == 0 {\n			return\n		}", "		if true {\n			return\n		}"},
	}},
	{"no-reassertion", "view re-assertion off", []edit{
		{claimFile, "	for _, m := range v.Members() {\n		c.assert(m, nil)\n	}\n", ""},
	}},
	{"ledger-is-a-mutex", "ledger replaced by a mutex", []edit{
		{handleFile, "	if !h.ledger.enter() {\n		return\n	}\n", ""},
		{handleFile, "		if h.ledger.leave() {\n			h.claimant.release(&h.r)\n		}\n", ""},
		{handleFile, "	if h.ledger.dispose() {\n		h.turn.Do(func() { h.claimant.release(&h.r) })\n	}", "	h.turn.Do(func() { h.claimant.release(&h.r) })"},
	}},
	{"subscribe-after-trigger", "subscribe after trigger", []edit{
		{batchFile, "		if r.state == claiming {\n			b.pending", "		if r.state == process && !r.seen {\n			continue\n		}\n		if r.state == claiming {\n			b.pending"},
	}},
	{"placed-without-a-grant", "a placement is a claim of the chosen silo", []edit{
		{placeFile, "	k.Resolve(q, func(r Resolution) {", "	answer(wire.Hit{Entry: wire.Entry{Epoch: k.self, Reg: 1, Node: true}})\n	return\n	k.Resolve(q, func(r Resolution) {"},
	}},
	{"placed-starts-without-a-grant", "a placement is a hint and never safety", []edit{
		{placeFile, "	k.Resolve(q, func(r Resolution) {", "	k.host.Granted(m.Addr, 1)\n	answer(wire.Hit{Entry: wire.Entry{Epoch: k.self, Reg: 1, Node: true}})\n	return\n	k.Resolve(q, func(r Resolution) {"},
	}},
	{"types-are-ignored", "placement uses only silos that handle the type", []edit{
		{placeFile, "(!r.exists || m.Handles(r.nodeType))", "(!r.exists || m.Handles(r.nodeType) || true)"},
	}},
	{"second-claim-in-flight", "a second claim in flight", []edit{
		{batchFile, "			if r.state != gone && r.round == rounds[i] {", "			if r.state != gone && rounds[i] > 0 {"},
	}},
	{"any-pong-permits", "a promise is no sign of life: it ends when its sender may vote", []edit{
		{permitFile, "sent-pong.Heard+p.vote", "sent+2*p.vote"},
	}},
	{"confirmed-by-an-older-answer", "a confirmation is of a time after it was asked for", []edit{
		{siloFile, "	if s.asking {\n		return\n	}\n	c := s.next", "	if s.asking {\n		s.next.settle(true)\n		s.next = nil\n		return\n	}\n	c := s.next"},
	}},
}

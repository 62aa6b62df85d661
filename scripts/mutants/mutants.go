package main

// mutant is one rule of the protocol taken out: text of a file replaced by another.
type mutant struct {
	name  string
	rule  string // what protocol.md or the issue calls it
	edits []edit
	// test must fail, of a rule of code that the simulation does not run; the zero value is the simulation.
	test test
}

// test is a test of a package.
type test struct{ pkg, name string }

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
	arriveFile  = "internal/route/arrivals.go"
	parcelFile  = "internal/route/parcel.go"
	hostFile    = "internal/route/host.go"
	postFile    = "internal/hub/post.go"
	gateFile    = "internal/hub/gate.go"
	deliverFile = "internal/hub/delivery.go"
	flowFile    = "internal/cluster/transport/flow.go"

	simPkg   = "./meshtest/sim"
	meshPkg  = "./meshtest"
	routePkg = "./internal/route"
	hubPkg   = "./internal/hub"
	claimPkg = "./internal/cluster/claim"
	dirPkg   = "./internal/cluster/directory"
)

var mutants = []mutant{
	{name: "claiming-does-not-park", rule: "claiming does not park", edits: []edit{
		{claimFile, "return wire.LocatedItem{Status: wire.Claiming, Reg: r.reg, Node: true}", "return wire.LocatedItem{Status: wire.None}"},
		{grantFile, "return r != nil && r.state == claiming", "return r != nil && false"},
	}},
	{name: "suspicion-is-stale-report", rule: "suspicion counts as stale report", edits: []edit{
		{laneFile, "		if d == Denied || d == Missing {\n", "		if d != Answered {\n"},
	}},
	{name: "unsettled-is-settled", rule: "unsettled treated as settled", edits: []edit{
		{claimsFile, "	if s.settled {\n		done(o.install(s, addr, e))", "	if true {\n		done(o.install(s, addr, e))"},
	}},
	{name: "no-order-no-guards", rule: "no reg order / guards", edits: []edit{
		{ownerFile, "if e.Reg > old.Reg {", "if true {"},
		{ownerFile, "e.Epoch == m.From && e.Reg <= it.Reg {", "e.Epoch == m.From {"},
		{guardsFile, "return ok && x.reg >= reg", "return ok && x.reg < 0"},
	}},
	{name: "connections-reorder", rule: "a connection keeps its order", edits: []edit{
		{flowFile, "max(f.net.sched.Now()+d, f.last[way]+1)", "f.net.sched.Now() + d"},
	}},
	{name: "others-not-asked", rule: "a frozen slot owner delays no answer by more than the locate bound", test: test{meshPkg, "TestANodeThatAHealthySiloServesIsFoundBesideAFrozenOwnerOfItsSlot"}, edits: []edit{
		{grantFile, "	if try == 0 && find != nil {", "	if false {"},
	}},
	{name: "ended-word-ends-a-locate", rule: "what has ended does not stand for who has not answered", test: test{dirPkg, "TestTheWordOfWhoHasEndedDoesNotStandForThoseWhoHaveNotAnswered"}, edits: []edit{
		{locateFile, " && (l.ended == nil || !l.ended(r.item.Addr, e))", ""},
	}},
	{name: "marks-prune-younger", rule: "a mark of completeness takes nothing that is younger away", test: test{dirPkg, "TestACompleteClaimPrunesWhatTheSiloDoesNotNameAnyMore"}, edits: []edit{
		{claimsFile, " && e.Reg <= m.UpTo", ""},
	}},
	{name: "locate-off", rule: "locate off", edits: []edit{
		{claimsFile, "	o.counts.Located++\n	self := o.self\n", "	if s.settled {\n		answer(o.located(n, m.Addr, Found{}))\n		return\n	}\n	answer(wire.Unknown{})\n	return\n	self := o.self\n"},
	}},
	{name: "tombstone-without-locate", rule: "tombstone answers without locate", edits: []edit{
		{claimsFile, "	o.counts.Located++\n	self := o.self\n", "	if age, closed := o.guards.closed(m.Addr, o.clock.Now()); closed {\n		answer(wire.Closed{Age: age})\n		return\n	}\n	self := o.self\n"},
	}},
	{name: "joiners-take-old-negatives", rule: "joiners take old negatives", edits: []edit{
		{locateFile, "	if r.found.Entry != nil {\n		for", "	if true {\n		for"},
	}},
	{name: "negatives-from-an-older-view", rule: "negatives from an older view", edits: []edit{
		{claimsFile, "if o.view.Key().Before(m.Key) {", "if false {"},
	}},
	{name: "two-votes-always", rule: "plain two-vote rule", edits: []edit{
		{siloFile, "return min(2, max(1, others))", "return 2"},
	}},
	{name: "no-timeline", rule: "no timeline", edits: []edit{
		{viewFile, "return cmp.Or(cmp.Compare(k.Timeline, o.Timeline), cmp.Compare(k.Number, o.Number))", "return cmp.Compare(k.Number, o.Number)"},
	}},
	{name: "no-lanes", rule: "no lanes", edits: []edit{
		{fenceFile, "lane <= x.lane {", "lane <= x.lane && lane == 0 {"},
		{laneFile, "	if l.state == draining && l.out == 0 {", "	if l.state == draining {"},
	}},
	{name: "no-fence", rule: "no lanes, at the receiver only", edits: []edit{
		{fenceFile, "lane <= x.lane {", "lane <= x.lane && lane == 0 {"},
	}},
	{name: "fences-go-early", rule: "a fence stands as long as what it is for may be under way", edits: []edit{
		{fenceFile, "fenceFor = 10 * time.Minute", "fenceFor = 10 * time.Millisecond"},
	}},
	{name: "guards-go-early", rule: "the end of a registration is remembered for its time", edits: []edit{
		{peersFile, "TombstoneFor: 10 * time.Minute, GuardFor: 30 * time.Second", "TombstoneFor: time.Millisecond, GuardFor: time.Millisecond"},
		{claimFile, "ClosedFor: 10 * time.Minute", "ClosedFor: time.Millisecond"},
	}},
	{name: "repeat-after-loss", rule: "repeat after a lost connection", edits: []edit{
		{laneFile, "	case Lost:\n		l.drain()\n		l.done = max(l.done, e.seq)\n		if !l.carrier.Over(e.m) {\n			l.carrier.Lose(e.m)\n		}\n	case Denied, Deferred, Unsent, Missing:", "	case Lost, Denied, Deferred, Unsent, Missing:"},
	}},
	{name: "no-claim-retry", rule: "no claim retry", edits: []edit{
		{batchFile, "	if len(again) == 0 && !unmarked {", "	if true {"},
	}},
	{name: "no-detach-retry", rule: "no detach retry", edits: []edit{
		{batchFile, "		if len(again) == 0 {\n			return\n		}", "		if true {\n			return\n		}"},
	}},
	{name: "no-reassertion", rule: "view re-assertion off", edits: []edit{
		{claimFile, "	for _, m := range v.Members() {\n		c.assert(m, nil)\n	}\n", ""},
	}},
	{name: "ledger-is-a-mutex", rule: "ledger replaced by a mutex", edits: []edit{
		{handleFile, "	if !h.ledger.enter() {\n		return\n	}\n", ""},
		{handleFile, "		if h.ledger.leave() {\n			h.claimant.release(&h.r)\n		}\n", ""},
		{handleFile, "	if h.ledger.dispose() {\n		h.turn.Do(func() { h.claimant.release(&h.r) })\n	}", "	h.turn.Do(func() { h.claimant.release(&h.r) })"},
	}},
	{name: "subscribe-after-trigger", rule: "subscribe after trigger", edits: []edit{
		{batchFile, "		if r.state == claiming {\n			b.pending", "		if r.state == process && !r.seen {\n			continue\n		}\n		if r.state == claiming {\n			b.pending"},
	}},
	{name: "placed-without-a-grant", rule: "a placement is a claim of the chosen silo", edits: []edit{
		{placeFile, "	k.Resolve(q, func(r Resolution) {", "	answer(wire.Hit{Entry: wire.Entry{Epoch: k.self, Reg: 1, Node: true}})\n	return\n	k.Resolve(q, func(r Resolution) {"},
	}},
	{name: "placed-starts-without-a-grant", rule: "a placement is a hint and never safety", edits: []edit{
		{placeFile, "	k.Resolve(q, func(r Resolution) {", "	k.host.Granted(m.Addr, 1)\n	answer(wire.Hit{Entry: wire.Entry{Epoch: k.self, Reg: 1, Node: true}})\n	return\n	k.Resolve(q, func(r Resolution) {"},
	}},
	{name: "types-are-ignored", rule: "placement uses only silos that handle the type", edits: []edit{
		{placeFile, "(!r.exists || m.Handles(r.nodeType))", "(!r.exists || m.Handles(r.nodeType) || true)"},
	}},
	{name: "second-claim-in-flight", rule: "a second claim in flight", edits: []edit{
		{batchFile, "			if r.state != gone && r.round == rounds[i] {", "			if r.state != gone && rounds[i] > 0 {"},
	}},
	{name: "any-pong-permits", rule: "a promise is no sign of life: it ends when its sender may vote", edits: []edit{
		{permitFile, "sent-pong.Heard+p.vote", "sent+2*p.vote"},
	}},
	{name: "confirmed-by-an-older-answer", rule: "a confirmation is of a time after it was asked for", edits: []edit{
		{siloFile, "	if s.asking {\n		return\n	}\n	c := s.next", "	if s.asking {\n		s.next.settle(true)\n		s.next = nil\n		return\n	}\n	c := s.next"},
	}},
	// The product's own end of the wire, which the simulation has a copy of.
	{name: "receiver-raises-no-fence", rule: "what is refused fences its lane", edits: []edit{
		{arriveFile, "	a.c.fences.Raise(a.sender, a.key, a.lane, a.c.turn.Now())\n", ""},
	}, test: test{routePkg, "TestWhatIsRefusedFencesItsLaneAtTheReceiver"}},
	{name: "refusal-raises-no-fence", rule: "what is refused fences its lane", edits: []edit{
		{arriveFile, "	a.fence()\n	a.code = code\n", "	a.code = code\n"},
	}, test: test{routePkg, "TestWhatIsRefusedFencesItsLaneAtTheReceiver"}},
	{name: "turned-away-raises-no-fence", rule: "what a hub turns away as it goes fences its lane", edits: []edit{
		{arriveFile, "		a.fence()\n		a.reply([]byte{refusedGoing})", "		a.reply([]byte{refusedGoing})"},
	}, test: test{routePkg, "TestWhatAHubTurnsAwayAsItGoesFencesItsLane"}},
	{name: "order-over-refusals", rule: "what is refused fences its lane, seen from another silo", edits: []edit{
		{arriveFile, "	a.c.fences.Raise(a.sender, a.key, a.lane, a.c.turn.Now())\n", ""},
	}, test: test{meshPkg, "TestMessagesKeepTheirOrderOverAHubThatIsStartedAnew"}},
	{name: "sent-again-after-loss", rule: "nothing is repeated that may have been executed", edits: []edit{
		{parcelFile, "	if d.IsRequest() {\n		c.mesh.Refuse(d, lost(c.name, d, err))\n	}\n	return Lost\n", "	return Unsent\n"},
	}, test: test{routePkg, "TestWhatWasSentOnAConnectionThatBreaksIsNotSentAgainAndItsSenderIsTold"}},
	{name: "executed-again-after-loss", rule: "nothing is repeated that may have been executed, seen from another silo", edits: []edit{
		{parcelFile, "	if d.IsRequest() {\n		c.mesh.Refuse(d, lost(c.name, d, err))\n	}\n	return Lost\n", "	return Unsent\n"},
	}, test: test{meshPkg, "TestWhatMayHaveBeenExecutedWhenAConnectionBreaksIsExecutedOnce"}},
	{name: "receiver-does-not-park", rule: "claiming parks", edits: []edit{
		{arriveFile, "	if !c.silo.Claims.Claims(a.key) {", "	if true {"},
	}, test: test{routePkg, "TestWhatComesWhileANodesGrantIsUnderWayWaitsForItInOrder"}},
	{name: "steps-aside-and-starts", rule: "no hub starts on a grant that was lost", edits: []edit{
		{hostFile, "	c.nodes.revoke(addr)\n", ""},
	}, test: test{routePkg, "TestANodeHubWhoseGrantIsLostBeforeItHasStartedDoesNotStart"}},
	{name: "is-put-out-and-starts", rule: "no hub starts on a grant that was lost", edits: []edit{
		{hostFile, "	c.nodes.revokeAll()\n", ""},
	}, test: test{routePkg, "TestANodeHubWhoseGrantIsLostBeforeItHasStartedDoesNotStart"}},
	{name: "every-post-is-taken", rule: "the refusal of a post of another silo is told", edits: []edit{
		{arriveFile, "	if err := a.d.Refusal(); err != nil {", "	if err := a.d.Refusal(); err != nil && false {"},
	}, test: test{routePkg, "TestAPostOfAnotherSiloIsAnsweredAsTakenOrWithItsRefusal"}},
	{name: "any-epoch-is-meant", rule: "a message for another incarnation is refused", edits: []edit{
		{arriveFile, "	if e.Epoch != c.self.Load() || e.Epoch == 0 {", "	if false {"},
	}, test: test{routePkg, "TestAMessageForAnotherIncarnationIsRefusedWithoutATurn"}},
	{name: "overload-drops-posts", rule: "no send without an outcome", edits: []edit{
		{postFile, "	h.mesh.refuse(d, f)\n", "	if d.slot != nil {\n		d.fail(f)\n		return\n	}\n	d.setState(message.IgnoredState)\n"},
	}, test: test{meshPkg, "TestEveryPostToAProcessHubThatDoesNotKeepUpIsHandledOrRefused"}},
	{name: "refused-posts-are-told-twice", rule: "a refused post is given back or told, never both", edits: []edit{
		{postFile, "	} else if !d.giveBack(f) {\n		m.notify", "	} else if d.giveBack(f); true {\n		m.notify"},
	}, test: test{meshPkg, "TestPostsBeyondWhatMayWaitForAStartAreToldToTheirSenderOnceAndHoldNothingUp"}},
	{name: "failed-starts-drop-posts", rule: "no send without an outcome", edits: []edit{
		{gateFile, "	h.mesh.refuse(d, &c)\n", "	if d.slot != nil {\n		d.fail(&c)\n	} else {\n		d.giveBack(&c)\n	}\n"},
	}, test: test{hubPkg, "TestAPostToAHubThatCouldNotStartIsToldToItsSenderWithTheCause"}},
	{name: "forwarded-posts-are-dropped", rule: "no send without an outcome", edits: []edit{
		{deliverFile, "	c.post.Store(postLet)\n", ""},
	}, test: test{hubPkg, "TestAForwardedPostThatIsRefusedIsToldToItsSender"}},
	{name: "lost-while-it-is-claimed", rule: "a claim that is under way was not lost", edits: []edit{
		{claimFile, "r.reg != m.Reg || r.open || r.landed", "r.reg != m.Reg || r.landed"},
	}, test: test{claimPkg, "TestOnlyAClaimThatWasAcknowledgedWithNoneUnderWayWasLost"}},
	{name: "failed-claims-are-in", rule: "a claim that has failed is not in", edits: []edit{
		{batchFile, "	c.watch.Settled(r.addr, r.reg, r.round, false)\n	r.landed = 0\n", "	c.watch.Settled(r.addr, r.reg, r.round, false)\n"},
	}, test: test{claimPkg, "TestAClaimThatFailsAfterItHadLandedIsNotInUntilItLandsAgain"}},
}

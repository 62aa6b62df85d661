package cluster

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Question asks who serves an address.
type Question struct {
	Addr  string
	Node  bool        // a node path: where nobody serves it, the grant is asked for
	Stale *wire.Entry // an entry that its own incarnation has denied
	// Placed: another silo has chosen this one for a node that nobody serves. It is placed no further.
	Placed bool
	Until  time.Duration // reading of the clock after which nobody waits for the answer any more
}

// Resolution is who serves an address, or why that is not known.
type Resolution struct {
	Entry *wire.Entry // set: send it there
	Local bool        // this silo serves it
	// Refusal is set where Entry is not.
	Refusal Refusal
}

// Refusal says why a message was not delivered, and who says so. Nothing was queued.
type Refusal struct {
	Reason  Reason
	By      string   // name of the silo that answered, or of this one
	Missing []string // members that could not be asked
	Detail  string
	Age     time.Duration // with Released: since its owner let go of it
}

// Reason is why a message was refused.
type Reason uint8

// The reasons of decision 2 that a resolution has. Only NoEntry and Released come from a locate in
// which every member has answered.
const (
	NoEntry Reason = iota + 1
	Released
	Unknown // a member is missing, the slot is unsettled, too many questions
	Starting
	Stopping
	Overloaded
	NoSilo // no silo handles the node's type
)

var reasonNames = [...]string{"", "no-entry", "released", "unknown", "starting", "stopping", "overloaded", "no-silo"}

func (r Reason) String() string { return reasonNames[r] }

// resolving is one resolution under way.
type resolving struct {
	Question
	placing
	tries int
	done  func(Resolution)
}

// Resolve finds who serves an address: the local route, a remembered answer, the slot owner, and where
// that one cannot say, every member. done is called once, on the turn, perhaps before Resolve returns.
func (k *Core) Resolve(q Question, done func(Resolution)) {
	k.counts.Resolutions++
	k.step(&resolving{Question: q, done: done})
}

// Doubt drops a remembered answer, if it is still that one: whoever acted on it was refused.
func (k *Core) Doubt(addr string, e wire.Entry) {
	if c, ok := k.cache[addr]; ok && c.Epoch == e.Epoch && c.Reg == e.Reg {
		delete(k.cache, addr)
	}
}

func (k *Core) remember(addr string, e wire.Entry) {
	if len(k.cache) >= k.config.Cache {
		for a := range k.cache { // any one: the order of a map is as good as a clock here
			delete(k.cache, a)
			break
		}
	}
	k.cache[addr] = e
}

func (k *Core) name() string {
	if m, ok := k.view.Member(k.self); ok {
		return m.Name
	}
	return "this silo"
}

func (r *resolving) refuse(reason Reason, by, detail string, missing ...string) {
	r.done(Resolution{Refusal: Refusal{Reason: reason, By: by, Detail: detail, Missing: missing}})
}

// again takes another step after a pause, inside the budget; at its end the refusal stands.
func (k *Core) again(r *resolving, pause time.Duration, reason Reason, detail string, missing ...string) {
	if k.clock.Now()+pause >= r.Until || r.tries > k.config.ResolveTries {
		r.refuse(reason, k.name(), detail, missing...)
		return
	}
	r.tries++
	k.clock.After(pause, func() { k.step(r) })
}

func (k *Core) local(r *resolving, reg uint64) {
	r.done(Resolution{Local: true, Entry: &wire.Entry{Epoch: k.self, Reg: reg, Node: r.Node}})
}

func (k *Core) step(r *resolving) {
	if k.self == 0 {
		r.refuse(Starting, k.name(), "this silo is not in the cluster yet")
		return
	}
	if !r.Node {
		if reg, ok := k.host.Serving(r.Addr); ok {
			k.local(r, reg)
			return
		}
	} else if reg, ok := k.Claims.Serves(r.Addr); ok {
		if k.host.Stopping(r.Addr) {
			k.again(r, 3*time.Millisecond, Stopping, "its hub is stopping here")
			return
		}
		k.local(r, reg)
		return
	} else if k.Claims.Claims(r.Addr) {
		k.activate(r)
		return
	}
	if e, ok := k.cache[r.Addr]; ok && !r.Placed {
		if k.view.Has(e.Epoch) && e.Epoch != k.self && (r.Stale == nil || r.Stale.Epoch != e.Epoch || r.Stale.Reg != e.Reg) {
			k.counts.FromCache++
			r.done(Resolution{Entry: &e})
			return
		}
		delete(k.cache, r.Addr)
	}
	if r.Node && r.Stale == nil {
		k.place(r)
		return
	}
	k.lookup(r)
}

// left is how long the answer to a resolution may take, so that it comes before its caller's lapse.
func (k *Core) left(r *resolving) time.Duration {
	left := r.Until - k.clock.Now()
	return left - min(left/5, budget.Margin(left))
}

// activate asks for the grant of a node hub, or joins who asks for it. Its caller is answered within its own
// bound; the grant goes on, and whoever asks next finds it (decision 5).
func (k *Core) activate(r *resolving) {
	left := k.left(r)
	if left <= 0 {
		r.refuse(Unknown, k.name(), "too little time is left to ask for its grant")
		return
	}
	over := false
	stop := k.clock.After(left, func() {
		over = true
		r.refuse(Unknown, k.name(), "its grant is still under way")
	})
	k.Claims.Activate(r.Addr, k.elsewhere, func(o claim.Outcome) {
		if over {
			return
		}
		stop()
		switch {
		case o.Granted:
			k.local(r, o.Reg)
		case o.Holder != nil:
			k.got(r, *o.Holder)
		case o.Why == claim.WhyEvicted:
			r.refuse(Starting, k.name(), "this silo was put out of the cluster and joins anew")
		case o.Why == claim.WhyStopping:
			r.refuse(Stopping, k.name(), "its hub is stopping here")
		default:
			r.refuse(Unknown, k.name(), "its grant was not had: "+o.Why)
		}
	})
}

// elsewhere asks every member who serves an address.
func (k *Core) elsewhere(addr string, done func(*wire.Entry)) {
	k.counts.AskedEverybody++
	k.Locator.Locate(wire.LocateItem{Addr: addr}, k.everybody, func(found directory.Found) { done(found.Entry) })
}

func (k *Core) everybody() []membership.Member { return k.view.Members() }

// got takes an answer that names an incarnation.
func (k *Core) got(r *resolving, e wire.Entry) {
	pause := 5 * time.Millisecond << min(r.tries, 5)
	switch {
	case e.Epoch == k.self:
		// The owner names this silo, which serves it no more.
		r.Stale = &e
		k.again(r, pause, Unknown, "the directory names this silo, which does not serve it")
	case !k.view.Has(e.Epoch):
		k.again(r, pause, Unknown, "its holder is in no view of this silo")
	default:
		k.remember(r.Addr, e)
		r.done(Resolution{Entry: &e})
	}
}

func (k *Core) lookup(r *resolving) {
	owner, ok := k.table.OwnerOf(r.Addr)
	if !ok {
		r.refuse(Unknown, k.name(), "no silo owns its slot")
		return
	}
	left := k.left(r)
	if left <= 0 {
		r.refuse(Unknown, k.name(), "too little time is left to ask the slot owner "+owner.Name)
		return
	}
	m := wire.Lookup{Head: wire.Head{From: k.self, To: owner.Epoch, Key: k.view.Key()}, Addr: r.Addr, Stale: r.Stale}
	k.Ask(owner, m, min(k.config.LookupBound, left), func(a wire.Answer, err error) {
		if k.self == 0 {
			r.refuse(Starting, k.name(), "this silo was put out of the cluster and joins anew")
			return
		}
		switch a := a.(type) {
		case wire.Hit:
			if r.Stale != nil && a.Entry.Epoch == r.Stale.Epoch && a.Entry.Reg == r.Stale.Reg {
				k.again(r, 10*time.Millisecond<<min(r.tries, 5), Unknown, "the directory still names an incarnation that has denied it")
				return
			}
			k.got(r, a.Entry)
		case wire.NotHere:
			k.negative(r, Refusal{Reason: NoEntry, By: owner.Name})
		case wire.Closed:
			k.negative(r, Refusal{Reason: Released, By: owner.Name, Age: a.Age})
		case wire.Unknown:
			r.forgetStale()
			k.ask(r, owner.Name, a.Why, a.Missing)
		case wire.NotOwner:
			k.Saw(owner, a.Key)
			k.again(r, 2*time.Millisecond<<min(r.tries, 6), Unknown, "the slot is on its way to another owner")
		case wire.WrongEpoch:
			k.Saw(owner, a.Key)
			k.again(r, 2*time.Millisecond<<min(r.tries, 6), Unknown, "the slot owner has started anew")
		default:
			why := "no answer"
			if err != nil {
				why = err.Error()
			}
			k.ask(r, owner.Name, "the slot owner "+owner.Name+": "+why, []string{owner.Name})
		}
	})
}

// forgetStale: for a node path the stale report has done its work, and the next step may ask for the grant.
func (r *resolving) forgetStale() {
	if r.Node {
		r.Stale = nil
	}
}

// negative ends a resolution whose slot owner has asked everybody. For a node path it only means that
// nobody serves it now: the next step asks for the grant.
func (k *Core) negative(r *resolving, f Refusal) {
	if !r.Node {
		r.done(Resolution{Refusal: f})
		return
	}
	r.Stale, r.nobody = nil, true
	reason, detail := f.Reason, "nobody serves it, and this silo is leaving"
	if !k.leaving {
		detail = "nobody serves it yet"
	} else {
		reason = Stopping
	}
	k.again(r, time.Millisecond, reason, detail)
}

// ask asks every member itself, where the slot owner could not say.
func (k *Core) ask(r *resolving, by, why string, missing []string) {
	left := k.left(r)
	if left <= 0 {
		r.refuse(Unknown, by, why, missing...)
		return
	}
	over := false
	stop := k.clock.After(left, func() {
		over = true
		r.refuse(Unknown, by, why, missing...)
	})
	k.counts.AskedEverybody++
	k.Locator.Locate(wire.LocateItem{Addr: r.Addr}, k.everybody, func(f directory.Found) {
		if over {
			return
		}
		stop()
		if k.self == 0 {
			r.refuse(Starting, k.name(), "this silo was put out of the cluster and joins anew")
			return
		}
		if f.Entry != nil {
			k.got(r, *f.Entry)
			return
		}
		if r.Node || r.tries > 2 {
			k.again(r, 100*time.Millisecond<<min(r.tries, 3), Unknown, why, missing...)
			return
		}
		r.refuse(Unknown, by, why, missing...)
	})
}

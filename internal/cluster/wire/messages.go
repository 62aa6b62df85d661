package wire

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// Version is the version of every encoding in this package. Silos with different ones refuse each other: see
// transport.Config.Messages.
const Version = 4

// Kind says which request a frame carries. Its numbers are part of the wire.
type Kind uint8

// The requests.
const (
	KindPing Kind = iota + 1
	KindHello
	KindViewGet
	KindViewPush
	KindClaim
	KindDetach
	KindLookup
	KindLocate
	KindSlotQuery
	KindHandOver
	KindRestored
	KindExplain
	KindPlace
	KindDeliver // not of this package: a delivery to a hub
	KindCommitted
)

var kindNames = [...]string{"", "ping", "hello", "view-get", "view-push", "claim", "detach", "lookup", "locate", "slot-query", "hand-over", "restored", "explain", "place", "deliver", "committed"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(?)"
}

// Request is one of the requests below.
type Request interface {
	Kind() Kind
	append(b []byte) []byte
}

// Answer is one of the answers below.
type Answer interface {
	code() code
	append(b []byte) []byte
}

// Head stands before every directory request: who asks, which incarnation is meant, and how new the
// asker's view is.
type Head struct {
	From, To membership.Epoch
	Key      membership.Key
}

// Entry says who serves an address: the directory's row.
type Entry struct {
	Epoch  membership.Epoch
	Reg    uint64 // the registration, a counter of the silo
	Node   bool   // a node hub, not a process hub
	Unsure bool   // granted while a member could not be asked
}

// Slots is a set of slots, a bit each.
type Slots []uint64

// NewSlots returns an empty set that can hold n slots.
func NewSlots(n int) Slots { return make(Slots, (n+63)/64) }

// Add puts a slot in.
func (s Slots) Add(slot int) { s[slot/64] |= 1 << (slot % 64) }

// Has tells whether a slot is in. A slot beyond the set is not.
func (s Slots) Has(slot int) bool { return slot/64 < len(s) && s[slot/64]>>(slot%64)&1 == 1 }

// Empty tells whether no slot is in.
func (s Slots) Empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// Covers tells whether every slot of o is in s.
func (s Slots) Covers(o Slots) bool {
	for i, w := range o {
		if i >= len(s) && w != 0 || i < len(s) && w&^s[i] != 0 {
			return false
		}
	}
	return true
}

// Requests.
type (
	// Ping asks for a sign of life.
	Ping struct{}
	// Hello is the handshake of a silo that wants to join.
	Hello struct{}
	// ViewGet asks for the view; answered with [ViewIs].
	ViewGet struct{}
	// ViewPush gives a newer view.
	ViewPush struct{ View *membership.View }
	// Claim says which addresses the sender serves, in order of its own.
	Claim struct {
		Head
		Items []ClaimItem
		// CompleteFor are the slots for which the items are all that the sender serves or asks for:
		// whatever else the receiver holds of it there is over, up to a registration number.
		CompleteFor Slots
		// UpTo is the newest registration of the sender when it was complete: the receiver may know later ones by
		// messages that have overtaken this one.
		UpTo uint64
	}
	// ClaimItem is one registration.
	ClaimItem struct {
		Addr  string
		Reg   uint64
		Node  bool
		Phase Phase
	}
	// Detach says that registrations have ended.
	Detach struct {
		Head
		Items []DetachItem
	}
	// DetachItem is one registration that has ended.
	DetachItem struct {
		Addr string
		Reg  uint64
		Node bool
	}
	// Lookup asks the slot owner who serves an address.
	Lookup struct {
		Head
		Addr  string
		Stale *Entry // an entry that was refuted by its own incarnation
	}
	// Locate asks a member whether it serves addresses itself.
	Locate struct {
		Head
		Items []LocateItem
	}
	// LocateItem is one question. An exclusive one is asked before a grant, for a slot that was
	// gained at Acquired.
	LocateItem struct {
		Addr      string
		Exclusive bool
		Slot      int
		Acquired  membership.Key
	}
	// SlotQuery asks for everything that the receiver serves in slots that the sender has gained.
	SlotQuery struct {
		Head
		Slots []Gained
	}
	// Gained is a slot and the key of the view that gave it.
	Gained struct {
		Slot     int
		Acquired membership.Key
	}
	// HandOver gives a slot's content to its next owner.
	HandOver struct {
		Head
		Slot    int
		Settled bool
		Entries []AddressedEntry
		Guards  []Guard
	}
	// Restored tells a silo that its claim was not known at the slot owner, and is again.
	Restored struct {
		Head
		Addr string
		Reg  uint64
	}
	// Place asks the receiver to serve a node that nobody serves: it claims it as if a caller of its own had asked,
	// and answers [Hit] with whoever serves it by then, or [Unknown]. It is a hint: nothing hangs on it.
	Place struct {
		Head
		Addr string
	}
	// Committed says that what stands at addresses was changed in the store without their hubs: it was committed
	// before this was sent. It is answered [OK] once the receiver answers from nothing older there, or [Unknown]. No
	// addresses are all of them.
	Committed struct {
		Head
		Addrs []string
	}
	// Explain asks a silo what it has observed of an address, or of itself where that is empty. It is for
	// people.
	Explain struct{ Addr string }
	// AddressedEntry is an entry with its address.
	AddressedEntry struct {
		Addr string
		Entry
	}
	// Guard remembers that a registration has ended.
	Guard struct {
		Addr   string
		Epoch  membership.Epoch
		Reg    uint64
		Closed bool          // a process hub's: a tombstone, which answers "released"
		Left   time.Duration // how long it is still kept
		Age    time.Duration // since the detach
	}
)

// Answers.
type (
	// OK says that it was done.
	OK struct{}
	// Pong is a sign of life.
	Pong membership.Pong
	// ViewIs is the receiver's view; nil when it has none.
	ViewIs struct{ View *membership.View }
	// WrongEpoch says that the request was for another incarnation, or the receiver is in no view.
	WrongEpoch struct{ Key membership.Key }
	// NotOwner says that the receiver's view gives the slot to another.
	NotOwner struct{ Key membership.Key }
	// Claimed answers a claim, item by item.
	Claimed struct {
		Key      membership.Key
		Results  []ClaimResult
		Complete Slots // the slots of CompleteFor that were accepted
	}
	// ClaimResult is the verdict on one item; Holder is set with Held.
	ClaimResult struct {
		Verdict Verdict
		Holder  Entry
	}
	// Detached answers a detach: the verdict on each item, Landed or Elsewhere.
	Detached struct {
		Key      membership.Key
		Verdicts []Verdict
	}
	// Hit answers a lookup: who serves it.
	Hit struct{ Entry Entry }
	// NotHere answers a lookup: every member was asked and nobody serves it.
	NotHere struct{ Asked int }
	// Closed answers a lookup: nobody serves it, and its owner let go of it Age ago.
	Closed struct {
		Asked int
		Age   time.Duration
	}
	// Unknown answers a lookup that could not ask everybody.
	Unknown struct {
		Missing []string // names of the members that did not answer
		Why     string   // one of the Why constants
	}
	// Located answers a locate, item by item.
	Located struct {
		Key   membership.Key
		Items []LocatedItem
	}
	// LocatedItem is what the member says of one address.
	LocatedItem struct {
		Status Status
		Reg    uint64        // with Serving and Claiming
		Node   bool          // with Serving and Claiming
		Age    time.Duration // with ClosedHere
	}
	// Explained answers an explain: the observation as JSON.
	Explained struct{ Observation string }
	// SlotIs answers a slot query: the slots for which the items are everything.
	SlotIs struct {
		Key   membership.Key
		Slots Slots
		Items []ClaimItem
	}
)

// Phase is where a claimed registration stands.
type Phase uint8

// The phases.
const (
	Wanted  Phase = iota // a node hub's first claim: asks for the grant
	Kept                 // a process hub, or a node hub that has been granted before
	Pending              // asks for nothing: the grant is under way in another message
)

// Verdict is the slot owner's word on one claim.
type Verdict uint8

// The verdicts.
const (
	Landed       Verdict = iota
	Elsewhere            // the receiver does not own the slot
	Held                 // another incarnation of the view serves it
	Ended                // this very registration has been detached
	Unsettled            // a member could not be asked; nothing is granted
	UnknownEpoch         // the claimant is not in the receiver's view
)

var verdictNames = [...]string{"landed", "not-owner", "held", "detached", "unsettled", "unknown-epoch"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "verdict(?)"
}

// Status is what a member says of an address when asked by a locate.
type Status uint8

// The states.
const (
	None Status = iota
	Serving
	Claiming   // its claim is under way; deliveries park
	ClosedHere // it served the address and let go of it
	NotYours   // an exclusive question of somebody whom this member's view does not name as owner
)

// Why an answer is unknown.
const (
	WhyMissing   = "member-missing"
	WhyUnsettled = "unsettled"
	WhyBusy      = "busy"
	WhyNoView    = "no-view"
	WhyLeaving   = "leaving"
)

package wire

import (
	"math"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// same compares messages: an empty list is a list that is not there, except a member's types.
var same = cmp.Options{
	cmp.Comparer(func(a, b *membership.View) bool {
		return (a == nil) == (b == nil) && a.Key() == b.Key() && cmp.Equal(a.Members(), b.Members(), strict)
	}),
	cmpopts.EquateEmpty(),
}

var strict = cmp.Options{}

func sampleView() *membership.View {
	v, err := membership.NewView(membership.Key{Timeline: 3, Number: 300}, []membership.Member{
		{Name: "a", Epoch: 0x0102030405060708, Addr: "10.0.0.1:7", Types: nil},
		{Name: "b", Epoch: math.MaxUint64, Addr: "[::1]:65535", Leaving: true, Types: []string{}},
		{Name: "ü", Epoch: 1, Addr: "", Types: []string{"Order", ""}},
	})
	if err != nil {
		panic(err)
	}
	return v
}

func sampleHead() Head {
	return Head{From: 0x1111111111111111, To: 0x2222222222222222, Key: membership.Key{Timeline: 1, Number: 129}}
}

func sampleSlots() Slots {
	s := NewSlots(130)
	s.Add(0)
	s.Add(64)
	s.Add(129)
	return s
}

// sample is one message under the name that the golden file has it by.
type sample struct {
	name    string
	request Request
	answer  Answer
}

func samples() []sample {
	entry := Entry{Epoch: 7, Reg: 128, Node: true, Unsure: true}
	key := membership.Key{Timeline: 2, Number: 5}
	return []sample{
		{name: "ping", request: Ping{}},
		{name: "hello", request: Hello{}},
		{name: "view-get", request: ViewGet{}},
		{name: "view-push", request: ViewPush{View: sampleView()}},
		{name: "view-push/none", request: ViewPush{}},
		{name: "claim", request: Claim{Head: sampleHead(), Items: []ClaimItem{
			{Addr: "portal/1", Reg: 1, Phase: Kept}, {Addr: "acme/n", Reg: 2, Node: true, Phase: Wanted}, {Addr: "acme/m", Reg: 3, Node: true, Phase: Pending},
		}, CompleteFor: sampleSlots(), UpTo: 300}},
		{name: "claim/empty", request: Claim{Head: sampleHead()}},
		{name: "detach", request: Detach{Head: sampleHead(), Items: []DetachItem{{Addr: "portal/1", Reg: 1}, {Addr: "acme/n", Reg: math.MaxUint64, Node: true}}}},
		{name: "lookup", request: Lookup{Head: sampleHead(), Addr: "portal/1"}},
		{name: "lookup/stale", request: Lookup{Head: sampleHead(), Addr: "acme/n", Stale: &entry}},
		{name: "locate", request: Locate{Head: sampleHead(), Items: []LocateItem{{Addr: "portal/1"}, {Addr: "acme/n", Exclusive: true, Slot: 1023, Acquired: key}}}},
		{name: "slot-query", request: SlotQuery{Head: sampleHead(), Slots: []Gained{{Slot: 0, Acquired: key}, {Slot: 1023, Acquired: key}}}},
		{name: "hand-over", request: HandOver{Head: sampleHead(), Slot: 17, Settled: true,
			Entries: []AddressedEntry{{"portal/1", Entry{Epoch: 1, Reg: 1}}, {"acme/n", entry}},
			Guards:  []Guard{{Addr: "portal/2", Epoch: 9, Reg: 4, Closed: true, Left: 9 * time.Minute, Age: time.Minute}, {Addr: "acme/m", Epoch: 9, Reg: 5, Left: time.Second}},
		}},
		{name: "restored", request: Restored{Head: sampleHead(), Addr: "portal/1", Reg: 77}},
		{name: "place", request: Place{Head: sampleHead(), Addr: "acme/n"}},
		{name: "committed", request: Committed{Head: sampleHead(), Addrs: []string{"acme/n", "acme/n/_Access/alice_Access"}}},
		{name: "committed/all", request: Committed{Head: sampleHead()}},
		{name: "pong", answer: Pong{Load: 100_000, Key: key, Heard: 250 * time.Millisecond, Hears: true}},
		{name: "explain", request: Explain{Addr: "acme/a"}},
		{name: "explained", answer: Explained{Observation: `{"silo":"a"}`}},

		{name: "ok", answer: OK{}},
		{name: "view-is", answer: ViewIs{View: sampleView()}},
		{name: "view-is/none", answer: ViewIs{}},
		{name: "wrong-epoch", answer: WrongEpoch{Key: key}},
		{name: "not-owner", answer: NotOwner{Key: key}},
		{name: "claimed", answer: Claimed{Key: key, Complete: sampleSlots(), Results: []ClaimResult{
			{Verdict: Landed}, {Verdict: Elsewhere}, {Verdict: Held, Holder: entry}, {Verdict: Ended}, {Verdict: Unsettled}, {Verdict: UnknownEpoch},
		}}},
		{name: "detached", answer: Detached{Key: key, Verdicts: []Verdict{Landed, Elsewhere}}},
		{name: "hit", answer: Hit{Entry: entry}},
		{name: "not-here", answer: NotHere{Asked: 3}},
		{name: "closed", answer: Closed{Asked: 3, Age: 1500 * time.Millisecond}},
		{name: "unknown", answer: Unknown{Missing: []string{"a", "b"}, Why: WhyMissing}},
		{name: "located", answer: Located{Key: key, Items: []LocatedItem{
			{Status: None}, {Status: Serving, Reg: 5}, {Status: Claiming, Reg: 6, Node: true}, {Status: ClosedHere, Age: time.Second}, {Status: NotYours},
		}}},
		{name: "slot-is", answer: SlotIs{Key: key, Slots: sampleSlots(), Items: []ClaimItem{{Addr: "portal/1", Reg: 1, Phase: Kept}}}},
	}
}

// bytes is the kind or the code of a message and its encoding: what the golden file holds.
func (s sample) bytes() []byte {
	if s.request != nil {
		return append([]byte{byte(s.request.Kind())}, Encode(s.request)...)
	}
	return EncodeAnswer(s.answer)
}

package wire

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// frameLimit is the largest message of the transport.
const frameLimit = 4 << 20

// lists are the messages with lists, each with n items of one address.
func lists(addr string, n int) map[string]sample {
	item := ClaimItem{Addr: addr, Phase: Kept}
	return map[string]sample{
		"claim":              {request: Claim{Head: sampleHead(), Items: many(n, item)}},
		"detach":             {request: Detach{Head: sampleHead(), Items: many(n, DetachItem{Addr: addr})}},
		"locate":             {request: Locate{Head: sampleHead(), Items: many(n, LocateItem{Addr: addr})}},
		"committed":          {request: Committed{Head: sampleHead(), Addrs: many(n, addr)}},
		"hand-over, entries": {request: HandOver{Head: sampleHead(), Entries: many(n, AddressedEntry{Addr: addr})}},
		"hand-over, guards":  {request: HandOver{Head: sampleHead(), Guards: many(n, Guard{Addr: addr})}},
		"slot-is":            {answer: SlotIs{Items: many(n, item)}},
	}
}

// plain are the messages with lists of something else than addresses, each with n items.
func plain(n int) map[string]sample {
	view, err := membership.NewView(membership.Key{Number: 1}, []membership.Member{{Name: "a", Epoch: 1, Types: many(n-1, "")}}) // the member is an item too
	if err != nil {
		panic(err)
	}
	return map[string]sample{
		"slot-query":       {request: SlotQuery{Head: sampleHead(), Slots: many(n, Gained{})}},
		"view-push, types": {request: ViewPush{View: view}},
		"claimed":          {answer: Claimed{Results: many(n, ClaimResult{})}},
		"detached":         {answer: Detached{Verdicts: many(n, Landed)}},
		"located":          {answer: Located{Items: many(n, LocatedItem{})}},
		"unknown":          {answer: Unknown{Missing: many(n, "")}},
		"view-is, types":   {answer: ViewIs{View: view}},
	}
}

func many[T any](n int, it T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = it
	}
	return list
}

// decoded reads the bytes of a sample, and returns how much that allocated.
func (s sample) decoded(b []byte) (n uint64, err error) {
	n = allocated(func() {
		if s.request != nil {
			_, err = Decode(Kind(b[0]), b[1:])
		} else {
			_, err = DecodeAnswer(b)
		}
	})
	return n, err
}

// bad input: a frame of nothing but empty addresses; protocol §3
func TestAFrameOfEmptyAddressesIsRefusedBeforeThereIsRoomForThem(t *testing.T) {
	check := func(name string, s sample) {
		b := s.bytes()
		if got, err := s.decoded(b); !errors.Is(err, ErrMalformed) || got > 1<<20 { // the process around the test allocates too
			t.Errorf("%s of %d bytes: %v, %d bytes allocated", name, len(b), err, got)
		}
	}
	for _, n := range []int{1, atOnce + 1, maxItems} {
		for name, s := range lists("", n) {
			check(name, s)
		}
	}
	// Of all lists that of a locate has the smallest items: a frame was once read into 24 times its length.
	full := Locate{Head: sampleHead(), Items: many((frameLimit-64)/2, LocateItem{})}
	check("a frame full of them", sample{request: full})
}

// bad input: an address that is empty where there is one alone; protocol §3
func TestAnEmptyAddressIsRefused(t *testing.T) {
	for _, m := range []Request{Lookup{Head: sampleHead()}, Restored{Head: sampleHead()}, Place{Head: sampleHead()}} {
		if got, err := Decode(m.Kind(), Encode(m)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := Decode(KindExplain, Encode(Explain{})); err != nil { // asks a silo of itself
		t.Error(err)
	}
}

// decision 4: maximum message 4 MiB; protocol §3
func TestAMessageHasAsManyItemsAsAFrameCanHonestlyHoldAndNoMore(t *testing.T) {
	largest := uint64(0)
	check := func(of func(n int) map[string]sample) {
		for name, s := range of(maxItems) {
			b := s.bytes()
			got, err := s.decoded(b)
			if err != nil {
				t.Errorf("%s with %d items is refused: %v", name, maxItems, err)
			}
			largest = max(largest, got)
		}
		for name, s := range of(maxItems + 1) {
			if got, err := s.decoded(s.bytes()); !errors.Is(err, ErrMalformed) || got > 1<<20 {
				t.Errorf("%s with one item too many: %v, %d bytes allocated", name, err, got)
			}
		}
	}
	check(func(n int) map[string]sample { return lists("a", n) })
	check(plain)
	t.Logf("the largest list is of %d bytes", largest)
	if largest > 4*frameLimit {
		t.Fatalf("%d bytes were allocated for one message", largest)
	}
	// All lists of a message count together, and no sum of counts wraps around.
	both := HandOver{Head: sampleHead(), Entries: many(maxItems/2, AddressedEntry{Addr: "a"}), Guards: many(maxItems/2+1, Guard{Addr: "a"})}
	if _, err := Decode(KindHandOver, Encode(both)); !errors.Is(err, ErrMalformed) {
		t.Errorf("two lists with one item too many: %v", err)
	}
	if _, err := Decode(KindLocate, appendUint(appendHead(nil, sampleHead()), math.MaxUint64)); !errors.Is(err, ErrMalformed) {
		t.Errorf("as many items as there are numbers: %v", err)
	}
}

// bad input: what remembers addresses is bounded by their number
func TestAnAddressIsNoLongerThanAnAddressMayBe(t *testing.T) {
	for _, n := range []int{maxAddr, maxAddr + 1} {
		addr := strings.Repeat("a", n)
		for name, b := range map[string]struct {
			kind Kind
			text []byte
		}{
			"locate": {KindLocate, Encode(Locate{Head: sampleHead(), Items: []LocateItem{{Addr: addr}}})},
			"claim":  {KindClaim, Encode(Claim{Head: sampleHead(), Items: []ClaimItem{{Addr: addr, Reg: 1}}})},
			"detach": {KindDetach, Encode(Detach{Head: sampleHead(), Items: []DetachItem{{Addr: addr, Reg: 1}}})},
			"lookup": {KindLookup, Encode(Lookup{Head: sampleHead(), Addr: addr})},
			"guards": {KindHandOver, Encode(HandOver{Head: sampleHead(), Guards: []Guard{{Addr: addr}}})},
		} {
			if _, err := Decode(b.kind, b.text); (err == nil) != (n <= maxAddr) {
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
		}
	}
}

// protocol §3: the frames that the directory sends fit, however long addresses are
func TestAFrameOfAThousandLongestAddressesFits(t *testing.T) {
	addr := strings.Repeat("a", maxAddr)
	for name, b := range map[string][]byte{ // directory.Config.LocateFrame, claim.Config.Batch
		"locate": Encode(Locate{Head: sampleHead(), Items: many(1000, LocateItem{Addr: addr})}),
		"claim":  Encode(Claim{Head: sampleHead(), Items: many(1000, ClaimItem{Addr: addr, Reg: math.MaxUint64})}),
		"detach": Encode(Detach{Head: sampleHead(), Items: many(1000, DetachItem{Addr: addr, Reg: math.MaxUint64})}),
	} {
		if len(b) > frameLimit {
			t.Errorf("%s: %d bytes", name, len(b))
		}
	}
}

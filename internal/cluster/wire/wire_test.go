package wire

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden file of a new wire version")

// protocol §3
func TestEveryMessageAndAnswerSurvivesItsEncoding(t *testing.T) {
	kinds, codes := map[Kind]bool{}, map[code]bool{}
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			if s.request != nil {
				kinds[s.request.Kind()] = true
				got, err := Decode(s.request.Kind(), Encode(s.request))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s.request, got, same); diff != "" {
					t.Fatalf("sent -, received +:\n%s", diff)
				}
				return
			}
			codes[s.answer.code()] = true
			got, err := DecodeAnswer(EncodeAnswer(s.answer))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.answer, got, same); diff != "" {
				t.Fatalf("sent -, received +:\n%s", diff)
			}
		})
	}
	for k := KindPing; k < KindDeliver; k++ {
		if !kinds[k] {
			t.Errorf("no sample of %s", k)
		}
	}
	for c := codeOK; c <= codePong; c++ {
		if !codes[c] {
			t.Errorf("no sample of answer %d", c)
		}
	}
}

// protocol §3
func TestTheBytesOfAWireVersionDoNotChange(t *testing.T) {
	var b strings.Builder
	for _, s := range samples() {
		fmt.Fprintf(&b, "%s %s\n", s.name, hex.EncodeToString(s.bytes()))
	}
	file := filepath.Join("testdata", fmt.Sprintf("wire-v%d.golden", Version))
	want, err := os.ReadFile(file)
	if *update && errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v: run the test with -update once for a new wire version", err)
	}
	// A file that is there is never rewritten: other bytes are another version.
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Fatalf("wire version %d has other bytes than it had (was -, is +). Raise Version, then run with -update:\n%s", Version, diff)
	}
}

// protocol §3
func TestWhatIsCutShortOrTooLongIsRefused(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			decode := func(b []byte) error { _, err := DecodeAnswer(b); return err }
			b := s.bytes()
			if s.request != nil {
				b = b[1:]
				decode = func(b []byte) error { _, err := Decode(s.request.Kind(), b); return err }
			}
			for n := range len(b) {
				if err := decode(b[:n]); !errors.Is(err, ErrMalformed) {
					t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
				}
			}
			if err := decode(append(b, 0)); !errors.Is(err, ErrMalformed) {
				t.Fatalf("one byte more: %v", err)
			}
		})
	}
}

// protocol §3
func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	head := appendHead(nil, sampleHead())
	twice := appendKey([]byte{1}, sampleHead().Key)
	twice = appendUint(twice, 2)
	for range 2 {
		twice = appendString(appendEpoch(appendString(twice, "a"), 1), "addr")
		twice = append(twice, 0, 0, 0)
	}
	tests := []struct {
		name string
		kind Kind
		b    []byte
	}{
		{"an unknown kind", 200, nil},
		{"a delivery, which is not of this package", KindDeliver, nil},
		{"a view with a member twice", KindViewPush, twice},
		{"a truth value that is none", KindViewPush, []byte{2}},
		{"types without a list", KindViewPush, append(appendString(appendEpoch(appendString([]byte{1, 1, 1, 1}, "a"), 1), ""), 0, 0, 1, 0)},
		{"an unknown phase", KindClaim, append(append([]byte{}, head...), 1, 1, 'a', 1, 0, 9, 0)},
		{"a slot number that is too large", KindHandOver, append(appendUint(append([]byte{}, head...), 1<<21), 0, 0, 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if m, err := Decode(test.kind, test.b); !errors.Is(err, ErrMalformed) {
				t.Fatalf("%+v, %v", m, err)
			}
		})
	}
	key := []byte{1, 1}
	for name, b := range map[string][]byte{
		"an unknown answer":  {99},
		"an unknown verdict": append([]byte{byte(codeDetached)}, append(key, 1, 9)...),
		"an unknown status":  append([]byte{byte(codeLocated)}, append(key, 1, 9)...),
		"a load too large":   append([]byte{byte(codePong)}, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"no duration":        append([]byte{byte(codeClosed), 1}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if a, err := DecodeAnswer(b); !errors.Is(err, ErrMalformed) {
				t.Fatalf("%+v, %v", a, err)
			}
		})
	}
}

// protocol §3
func TestACountBeyondTheBytesAllocatesNothing(t *testing.T) {
	const huge = 1 << 24 // items; a list of them would be hundreds of megabytes
	head := appendHead(nil, sampleHead())
	requests := map[Kind][]byte{
		KindClaim:     appendUint(head, huge),
		KindDetach:    appendUint(head, huge),
		KindLookup:    appendUint(head, huge),
		KindLocate:    appendUint(head, huge),
		KindSlotQuery: appendUint(head, huge),
		KindCommitted: appendUint(head, huge),
		KindHandOver:  appendUint(append(appendUint(head, 1), 0), huge),
		KindViewPush:  appendUint(appendKey([]byte{1}, sampleHead().Key), huge),
	}
	for k, b := range requests {
		if n := allocated(func() { _, _ = Decode(k, b) }); n > 1<<20 { // the process around the test allocates too
			t.Errorf("%s of %d bytes allocated %d", k, len(b), n)
		}
	}
	for _, c := range []code{codeClaimed, codeDetached, codeLocated, codeSlotIs, codeUnknown} {
		b := appendUint([]byte{byte(c), 1, 1}, huge)
		if n := allocated(func() { _, _ = DecodeAnswer(b) }); n > 1<<20 { // the process around the test allocates too
			t.Errorf("answer %d of %d bytes allocated %d", c, len(b), n)
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestASetOfSlotsKnowsWhatIsInIt(t *testing.T) {
	a, b := NewSlots(65), NewSlots(200)
	if !a.Empty() || !a.Covers(nil) || !Slots(nil).Covers(a) {
		t.Fatal("an empty set is covered by every set")
	}
	a.Add(64)
	b.Add(64)
	if !a.Has(64) || a.Has(63) || a.Has(1000) || !a.Covers(b) || !b.Covers(a) {
		t.Fatal("both hold 64 alone")
	}
	b.Add(199)
	if a.Covers(b) || !b.Covers(a) || Slots(nil).Covers(a) {
		t.Fatal("199 is in one of them only")
	}
}

// protocol §3
func FuzzRequest(f *testing.F) {
	for _, s := range samples() {
		if s.request != nil {
			f.Add(s.bytes())
		}
	}
	for _, s := range lists("", 100) { // addresses that are none
		if s.request != nil {
			f.Add(s.bytes())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		k := Kind(b[0])
		m, err := Decode(k, b[1:])
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		again, err := Decode(k, Encode(m))
		if err != nil {
			t.Fatalf("%+v is not read again: %v", m, err)
		}
		if diff := cmp.Diff(m, again, same); diff != "" {
			t.Fatalf("read -, read again +:\n%s", diff)
		}
		if len(Encode(m)) > len(b)-1 {
			t.Fatalf("%d bytes became %d", len(b)-1, len(Encode(m)))
		}
	})
}

// protocol §3
func FuzzAnswer(f *testing.F) {
	for _, s := range samples() {
		if s.answer != nil {
			f.Add(s.bytes())
		}
	}
	f.Add(lists("", 100)["slot-is"].bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAnswer(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeAnswer(EncodeAnswer(a))
		if err != nil {
			t.Fatalf("%+v is not read again: %v", a, err)
		}
		if diff := cmp.Diff(a, again, same); diff != "" {
			t.Fatalf("read -, read again +:\n%s", diff)
		}
	})
}

package route

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

func at(full string) *address.Address {
	a, err := address.Parse(full)
	if err != nil {
		panic(err)
	}
	return &a
}

func sampleEnvelopes() []*envelope {
	return []*envelope{
		{Epoch: 1, To: at("portal/x"), Type: "t"},
		{Epoch: 1<<63 + 5, Lane: 300, Sender: 7, To: at("portal/x~sync/1"), From: at("mesh/a"), Type: "node/patch", Request: true, Left: 9 * time.Second,
			Bound: budget.Read, By: budget.Request, Depth: 3, Payload: []byte("payload")},
		{Epoch: 2, To: at("acme/Stories/läunch"), Type: "node/get", Request: true,
			Identity: &message.Identity{Subject: "Alice", Name: "Alice B", Email: "a@b", Roles: []string{"x", "y"}, TimeZone: "Europe/Zurich", Locale: "de",
				ImpersonatedBy: "root", Token: true, Virtual: true, Hub: true},
			Properties: map[string]string{"b": "2", "a": ""}, Visited: []string{"portal/1", "mesh/2"}},
	}
}

// invariant 33
func TestADeliveryKeepsItsShapeOnTheWire(t *testing.T) {
	for i, e := range sampleEnvelopes() {
		got, err := decodeEnvelope(e.append(nil))
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if len(got.Payload) == 0 {
			got.Payload = nil
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("%d: sent -, received +:\n%s", i, diff)
		}
	}
}

// decision 4: a golden file a wire version
func TestTheBytesOfAnEnvelopeDoNotChange(t *testing.T) {
	var b strings.Builder
	for _, e := range sampleEnvelopes() {
		fmt.Fprintln(&b, hex.EncodeToString(e.append(nil)))
	}
	want, err := os.ReadFile(filepath.Join("testdata", "envelope-v1.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("another encoding is another wire version:\n%s", diff)
	}
}

func TestAnEnvelopeThatIsCutShortIsRefused(t *testing.T) {
	for _, e := range sampleEnvelopes() {
		b := e.append(nil)
		for n := range len(b) - len(e.Payload) {
			if _, err := decodeEnvelope(b[:n]); !errors.Is(err, errEnvelope) {
				t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
			}
		}
	}
}

// emptyTexts are envelopes that end in a list of n empty texts.
func emptyTexts(n int) map[string][]byte {
	nothing := make([]byte, 2*n)
	listed := func(flags byte, before ...byte) []byte {
		b := (&envelope{To: at("portal/x"), Type: "t"}).append(nil)
		b[0] |= flags
		return append(binary.AppendUvarint(append(b, before...), uint64(n)), nothing...)
	}
	roles := binary.BigEndian.AppendUint32(nil, uint32(7+len(binary.AppendUvarint(nil, uint64(n)))+n))
	return map[string][]byte{"visited": listed(hasVisited), "properties": listed(hasProperties), "roles": listed(hasIdentity, append(roles, 0, 0, 0, 0, 0, 0, 0)...)}
}

// bad input: a frame of nothing but empty texts; decision 4: maximum message 4 MiB
func TestAnEnvelopeOfManyEmptyTextsIsRefusedBeforeThereIsRoomForThem(t *testing.T) {
	for name, b := range emptyTexts(maxTexts) {
		if _, err := decodeEnvelope(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, n := range []int{maxTexts + 1, 2<<20 - 100} {
		for name, b := range emptyTexts(n) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decodeEnvelope(b)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, errEnvelope) || got > 1<<20 { // the process around the test allocates too
				t.Errorf("%s with %d texts: %v, %d bytes allocated", name, n, err, got)
			}
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	for _, e := range sampleEnvelopes() {
		f.Add(e.append(nil))
	}
	for _, b := range emptyTexts(100) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEnvelope(b)
		if err != nil {
			return
		}
		again, err := decodeEnvelope(e.append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

type travelError struct {
	Path string
	N    int
}

func (e *travelError) Error() string { return e.Path }

var errSentinel = errors.New("sentinel")

type travelRequest struct{ B []byte }

var travels = hub.Define[*travelRequest, *travelRequest]("test/travels", message.Request)

func codec(t testing.TB) *Codec {
	t.Helper()
	c, err := NewCodec([]hub.WireType{travels.Wire()}, []message.Cause{message.CauseOf[travelError]("travel"), message.CauseIs("sentinel", errSentinel)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// C27, messaging §1.3
func TestAFailureArrivesWithWhatItSaysAndTheCauseThatIsKnown(t *testing.T) {
	c := codec(t)
	full := &message.Failure{Type: message.ShuttingDown, Message: "m", Target: "acme/a", DeliveryID: "1.2", Operation: "node/get", AnsweredBy: "acme/a",
		Reason: message.ReasonStopping, TargetUnserved: true, OutcomeUnknown: true, RetryAfter: time.Second, NodeTypePath: "T",
		Cause: fmt.Errorf("while: %w", &travelError{"p", 3})}
	b, err := c.encodeFailure(fmt.Errorf("outer: %w", full))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.decodeFailure(b)
	if err != nil {
		t.Fatal(err)
	}
	var cause *travelError
	if !errors.As(error(got), &cause) || *cause != (travelError{"p", 3}) {
		t.Errorf("the cause is %v", got.Cause)
	}
	want := *full
	want.Cause, got.Cause = nil, nil
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
	for _, e := range []error{errSentinel, fmt.Errorf("x: %w", errSentinel)} {
		if b, err = c.encodeFailure(e); err != nil {
			t.Fatal(err)
		}
		if got, err = c.decodeFailure(b); err != nil || !errors.Is(got, errSentinel) || got.Message != e.Error() {
			t.Errorf("%v: %+v %v", e, got, err)
		}
	}
	if b, err = c.encodeFailure(context.Canceled); err != nil {
		t.Fatal(err)
	}
	if got, err = c.decodeFailure(b); err != nil || !got.Transient() {
		t.Errorf("a request that was given up: %+v %v", got, err)
	}
}

// bad input: what a peer sends is not trusted to be what it should be
func TestAPayloadThatCanNotBeReadIsAnError(t *testing.T) {
	c := codec(t)
	for _, b := range [][]byte{nil, {0xff}, bytes.Repeat([]byte{0x81}, 1000), {0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		if err := c.decode(b, &travelRequest{}); !errors.Is(err, errEnvelope) {
			t.Errorf("%x: %v", b[:min(len(b), 9)], err)
		}
		if _, err := c.decodeFailure(b); !errors.Is(err, errEnvelope) {
			t.Errorf("as a failure, %x: %v", b[:min(len(b), 9)], err)
		}
	}
}

func TestTwoTypesOfOneNameAreNoCodec(t *testing.T) {
	if _, err := NewCodec([]hub.WireType{travels.Wire(), travels.Wire()}, nil); err == nil {
		t.Error("it was made")
	}
}

package route

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// Codec turns messages and failures into bytes and back. Only the types that it was told of travel: a
// message that works on its hub's turn alone can not be sent from elsewhere. It is immutable once a
// cluster uses it, and then safe for concurrent use.
type Codec struct {
	types  map[string]hub.WireType
	causes []message.Cause
	enc    cbor.UserBufferEncMode
	dec    cbor.DecMode
}

// Limits of what is decoded: a peer is trusted, its bugs are not.
const (
	maxNesting  = 64
	maxElements = 1 << 20
)

// NewCodec returns a codec for the given types, the ping of a hub and the notice of a failure included,
// and for failures whose causes are among those given: the first that is found travels.
func NewCodec(types []hub.WireType, causes []message.Cause) (*Codec, error) {
	enc, err := cbor.EncOptions{Sort: cbor.SortNone, Time: cbor.TimeRFC3339Nano, TimeTag: cbor.EncTagNone}.UserBufferEncMode()
	if err != nil {
		return nil, err
	}
	dec, err := cbor.DecOptions{MaxNestedLevels: maxNesting, MaxArrayElements: maxElements, MaxMapPairs: maxElements}.DecMode()
	if err != nil {
		return nil, err
	}
	c := &Codec{types: map[string]hub.WireType{}, causes: causes, enc: enc, dec: dec}
	for _, t := range append(slices.Clone(types), hub.Ping.Wire()) {
		if t.NewRequest() == nil {
			return nil, fmt.Errorf("route: '%s' is not a pointer type and can not travel", t.Name())
		}
		if _, twice := c.types[t.Name()]; twice {
			return nil, fmt.Errorf("route: two message types are named '%s'", t.Name())
		}
		c.types[t.Name()] = t
	}
	return c, nil
}

// wireFailure is a failure on the wire.
type wireFailure struct {
	Type           uint8           `cbor:"1,keyasint"`
	Message        string          `cbor:"2,keyasint,omitempty"`
	Target         string          `cbor:"3,keyasint,omitempty"`
	DeliveryID     string          `cbor:"4,keyasint,omitempty"`
	Operation      string          `cbor:"5,keyasint,omitempty"`
	AnsweredBy     string          `cbor:"6,keyasint,omitempty"`
	Reason         string          `cbor:"7,keyasint,omitempty"`
	TargetUnserved bool            `cbor:"8,keyasint,omitempty"`
	OutcomeUnknown bool            `cbor:"9,keyasint,omitempty"`
	RetryAfter     time.Duration   `cbor:"10,keyasint,omitempty"`
	NodeTypePath   string          `cbor:"11,keyasint,omitempty"`
	CauseName      string          `cbor:"12,keyasint,omitempty"`
	Cause          cbor.RawMessage `cbor:"13,keyasint,omitempty"`
}

// maxScratch is the largest buffer that is kept for the next message.
const maxScratch = 64 << 10

// scratch holds buffers in which messages are put together. They hold nothing between two uses.
var scratch = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode returns what head adds, followed by an encoded value. The buffer is the caller's, to be given
// back with [free].
func (c *Codec) encode(head func([]byte) []byte, v any) (*bytes.Buffer, error) {
	buf := scratch.Get().(*bytes.Buffer)
	buf.Reset()
	buf.Write(head(buf.AvailableBuffer()))
	if err := c.enc.MarshalToBuffer(v, buf); err != nil {
		free(buf)
		return nil, err
	}
	return buf, nil
}

// free gives a buffer back whose bytes nobody reads any more.
func free(buf *bytes.Buffer) {
	if buf.Cap() <= maxScratch {
		scratch.Put(buf)
	}
}

func (c *Codec) decode(b []byte, into any) error {
	if into == nil {
		return errEnvelope
	}
	if err := c.dec.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%w: %w", errEnvelope, err)
	}
	return nil
}

// encodeFailure encodes what a hub answered instead of a reply. Of its cause travels the first that the
// codec knows.
func (c *Codec) encodeFailure(err error) ([]byte, error) {
	if errors.Is(err, context.Canceled) {
		err = &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonStopping, Message: "the request was given up", Cause: err}
	}
	f := message.Classify(err)
	w := wireFailure{Type: uint8(f.Type), Message: f.Message, Target: f.Target, DeliveryID: f.DeliveryID, Operation: f.Operation,
		AnsweredBy: f.AnsweredBy, Reason: f.Reason, TargetUnserved: f.TargetUnserved, OutcomeUnknown: f.OutcomeUnknown,
		RetryAfter: f.RetryAfter, NodeTypePath: f.NodeTypePath}
	for _, k := range c.causes {
		v, ok := k.Find(err)
		if !ok {
			continue
		}
		b, err := c.enc.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("route: the cause '%s' can not travel: %w", k.Name, err)
		}
		w.CauseName, w.Cause = k.Name, b
		break
	}
	return c.enc.Marshal(&w)
}

func (c *Codec) decodeFailure(b []byte) (*message.Failure, error) {
	var w wireFailure
	if err := c.decode(b, &w); err != nil {
		return nil, err
	}
	f := &message.Failure{Type: message.ErrorType(w.Type), Message: w.Message, Target: w.Target, DeliveryID: w.DeliveryID, Operation: w.Operation,
		AnsweredBy: w.AnsweredBy, Reason: w.Reason, TargetUnserved: w.TargetUnserved, OutcomeUnknown: w.OutcomeUnknown,
		RetryAfter: w.RetryAfter, NodeTypePath: w.NodeTypePath}
	for _, k := range c.causes {
		if k.Name != w.CauseName {
			continue
		}
		v, e := k.Make()
		if err := c.decode(w.Cause, v); err != nil {
			return nil, err
		}
		f.Cause = e
	}
	return f, nil
}

package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// envelope is a delivery on its way to another silo. Its header is written by hand; only the target
// decodes the payload. What it carries of the budget is what remains, because clocks differ.
type envelope struct {
	Epoch   uint64 // the incarnation that is meant
	Lane    uint64
	Sender  uint64 // the process that owns the lane
	To      string // full address
	From    string // full address of the sending hub; "" from outside any
	Type    string // name of the message type
	Request bool   // somebody awaits the answer

	Left      time.Duration // 0: no bound
	Bound, By budget.Bound
	Depth     uint8

	Identity   *message.Identity
	Properties map[string]string
	Visited    []string
	Payload    []byte
}

// Answers to an envelope.
const (
	replyValue    byte = iota + 1 // followed by the encoded reply
	replyFailure                  // followed by the encoded failure
	replyTaken                    // a message that nobody awaits is in the inbox
	refusedAbsent                 // this incarnation does not serve the address
	refusedEpoch                  // another incarnation was meant
	refusedGoing                  // its hub is on its way down, and still holds the address
	refusedLane                   // an older message of the lane was refused
)

// errEnvelope is what every decoding error of an envelope wraps.
var errEnvelope = errors.New("route: malformed envelope")

const (
	hasIdentity = 1 << iota
	hasProperties
	hasVisited
	isRequest
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (e *envelope) flags() byte {
	var f byte
	if e.Identity != nil {
		f |= hasIdentity
	}
	if len(e.Properties) > 0 {
		f |= hasProperties
	}
	if len(e.Visited) > 0 {
		f |= hasVisited
	}
	if e.Request {
		f |= isRequest
	}
	return f
}

// append adds the envelope's bytes to b.
func (e *envelope) append(b []byte) []byte {
	b = append(b, e.flags())
	b = binary.BigEndian.AppendUint64(b, e.Epoch)
	b = binary.BigEndian.AppendUint64(b, e.Sender)
	b = binary.AppendUvarint(b, e.Lane)
	b = appendText(b, e.To)
	b = appendText(b, e.From)
	b = appendText(b, e.Type)
	b = binary.AppendUvarint(b, uint64(max(e.Left, 0)))
	b = append(b, byte(e.Bound), byte(e.By), e.Depth)
	if e.Identity != nil {
		b = appendIdentity(b, e.Identity)
	}
	if len(e.Properties) > 0 {
		b = binary.AppendUvarint(b, uint64(len(e.Properties)))
		for _, k := range slices.Sorted(maps.Keys(e.Properties)) {
			b = appendText(appendText(b, k), e.Properties[k])
		}
	}
	if len(e.Visited) > 0 {
		b = appendTexts(b, e.Visited)
	}
	return append(b, e.Payload...)
}

func appendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

const (
	isToken = 1 << iota
	isVirtual
	isHub
)

func appendIdentity(b []byte, id *message.Identity) []byte {
	var f byte
	if id.Token {
		f |= isToken
	}
	if id.Virtual {
		f |= isVirtual
	}
	if id.Hub {
		f |= isHub
	}
	b = append(b, f)
	for _, s := range []string{id.Subject, id.Name, id.Email, id.TimeZone, id.Locale, id.ImpersonatedBy} {
		b = appendText(b, s)
	}
	return appendTexts(b, id.Roles)
}

// cursor takes an envelope apart. After the first fault everything reads as zero.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) fail() {
	c.bad, c.b = true, nil
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.fail()
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) word() uint64 {
	if len(c.b) < 8 {
		c.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(c.b)
	c.b = c.b[8:]
	return v
}

func (c *cursor) uint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) text() string {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.fail()
		return ""
	}
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}

func (c *cursor) texts() []string {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = c.text()
	}
	return list
}

// decodeEnvelope reads an envelope; its payload stays a part of b.
func decodeEnvelope(b []byte) (*envelope, error) {
	c := &cursor{b: b}
	flags := c.byte()
	e := &envelope{Request: flags&isRequest != 0, Epoch: c.word(), Sender: c.word(), Lane: c.uint(), To: c.text(), From: c.text(), Type: c.text()}
	e.Left = time.Duration(c.uint())
	e.Bound, e.By, e.Depth = budget.Bound(c.byte()), budget.Bound(c.byte()), c.byte()
	if flags&hasIdentity != 0 {
		e.Identity = c.identity()
	}
	if flags&hasProperties != 0 {
		n := c.uint()
		if n > uint64(len(c.b)) {
			c.fail()
			n = 0
		}
		e.Properties = make(map[string]string, n)
		for range n {
			k := c.text()
			e.Properties[k] = c.text()
		}
	}
	if flags&hasVisited != 0 {
		e.Visited = c.texts()
	}
	if c.bad || e.Left < 0 || flags >= isRequest<<1 {
		return nil, errEnvelope
	}
	e.Payload = c.b
	return e, nil
}

func (c *cursor) identity() *message.Identity {
	f := c.byte()
	id := &message.Identity{Token: f&isToken != 0, Virtual: f&isVirtual != 0, Hub: f&isHub != 0}
	id.Subject, id.Name, id.Email = c.text(), c.text(), c.text()
	id.TimeZone, id.Locale, id.ImpersonatedBy = c.text(), c.text(), c.text()
	if id.Roles = c.texts(); len(id.Roles) == 0 {
		id.Roles = nil
	}
	return id
}

// addresses parses the two addresses of an envelope.
func (e *envelope) addresses() (to, from address.Address, err error) {
	if to, err = address.Parse(e.To); err != nil {
		return to, from, fmt.Errorf("%w: %w", errEnvelope, err)
	}
	if e.From != "" {
		if from, err = address.Parse(e.From); err != nil {
			return to, from, fmt.Errorf("%w: %w", errEnvelope, err)
		}
	}
	return to, from, nil
}

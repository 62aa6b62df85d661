package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// envelope is a delivery on its way to another silo. Its header is written by hand; only the target
// decodes the payload. What it carries of the budget is what remains, because clocks differ.
type envelope struct {
	Epoch   uint64 // the incarnation that is meant
	Lane    uint64
	Sender  uint64 // the process that owns the lane
	To      *address.Address
	From    *address.Address // the sending hub; nil from outside any
	Type    string           // name of the message type
	Request bool             // somebody awaits the answer

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
var (
	errEnvelope = errors.New("route: malformed envelope")
	errNowhere  = errors.New("no target")
)

const (
	hasIdentity = 1 << iota
	hasProperties
	hasVisited
	isRequest
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendAddress(b []byte, a *address.Address) []byte {
	if a == nil {
		return append(b, 0)
	}
	return appendText(b, a.String())
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
	b = binary.BigEndian.AppendUint64(b, e.Lane)
	b = binary.BigEndian.AppendUint64(b, uint64(max(e.Left, 0)))
	b = binary.BigEndian.AppendUint64(b, e.Sender)
	b = append(b, byte(e.Bound), byte(e.By), e.Depth)
	b = appendAddress(b, e.To)
	b = appendAddress(b, e.From)
	b = appendText(b, e.Type)
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

// seal writes what is known only when an envelope leaves into its bytes.
func seal(b []byte, epoch, lane uint64, left time.Duration) {
	binary.BigEndian.PutUint64(b[1:], epoch)
	binary.BigEndian.PutUint64(b[9:], lane)
	binary.BigEndian.PutUint64(b[17:], uint64(max(left, 0)))
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

// appendIdentity adds an identity behind its length, so that one that is known is not read again.
func appendIdentity(b []byte, id *message.Identity) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint32(b, 0)
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
	b = appendTexts(b, id.Roles)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// cursor takes an envelope apart. After the first fault everything reads as zero.
type cursor struct {
	b   []byte
	bad bool
	why error // an address is none
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

// bytes takes a text without copying it.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) text() string { return string(c.bytes(c.uint())) }

func (c *cursor) half() uint64 {
	if b := c.bytes(4); b != nil {
		return uint64(binary.BigEndian.Uint32(b))
	}
	return 0
}

const (
	// maxTexts bounds the lists of an envelope: its properties, the hubs that it has visited, the roles of
	// its sender. A text takes more room in memory than on the wire, an empty one 16 times as much.
	maxTexts = 65_536
	// fewTexts is how many texts room is made for before they have been read.
	fewTexts = 64
)

// count reads how many items follow, each of at least size bytes.
func (c *cursor) count(size int) int {
	n := c.uint()
	if n > maxTexts || n > uint64(len(c.b)/size) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *cursor) texts() []string {
	n := c.count(1)
	list := make([]string, 0, min(n, fewTexts))
	for range n {
		if c.bad {
			return nil
		}
		list = append(list, c.text())
	}
	return list
}

// decodeEnvelope reads an envelope; its payload stays a part of b.
func decodeEnvelope(b []byte) (*envelope, error) {
	e := &envelope{}
	return e, (&reader{addresses: address.NewCache()}).read(b, e)
}

// reader reads envelopes. What most of them repeat it does not make anew: addresses, names of known types,
// and the identity of the one before. It is safe for concurrent use.
type reader struct {
	types     map[string]hub.WireType
	addresses *address.Cache
	last      atomic.Pointer[knownIdentity]
}

type knownIdentity struct {
	text string // as it travels
	id   *message.Identity
}

// read fills an empty envelope. Its payload stays a part of b.
func (r *reader) read(b []byte, e *envelope) error {
	c := cursor{b: b}
	flags := c.byte()
	e.Request = flags&isRequest != 0
	e.Epoch, e.Lane, e.Left, e.Sender = c.word(), c.word(), time.Duration(c.word()), c.word()
	e.Bound, e.By, e.Depth = budget.Bound(c.byte()), budget.Bound(c.byte()), c.byte()
	e.To, e.From = r.address(&c), r.address(&c)
	e.Type = r.typeName(c.bytes(c.uint()))
	if flags&hasIdentity != 0 {
		e.Identity = r.identity(&c)
	}
	if flags&hasProperties != 0 {
		n := c.count(2)
		if n == 0 {
			c.fail() // what is empty is not said to be there
		}
		e.Properties = make(map[string]string, min(n, fewTexts))
		for range n {
			if c.bad {
				break
			}
			k := c.text()
			e.Properties[k] = c.text()
		}
	}
	if flags&hasVisited != 0 {
		if e.Visited = c.texts(); len(e.Visited) == 0 {
			c.fail()
		}
	}
	if c.bad || e.Left < 0 || flags >= isRequest<<1 {
		return errEnvelope
	}
	if c.why == nil && e.To == nil {
		c.why = errNowhere
	}
	if c.why != nil {
		return fmt.Errorf("%w: %w", errEnvelope, c.why)
	}
	e.Payload = c.b
	return nil
}

// address reads an address; nil where there is none. One that is none fails c with why.
func (r *reader) address(c *cursor) *address.Address {
	text := c.bytes(c.uint())
	if len(text) == 0 {
		return nil
	}
	a, err := r.addresses.ParseBytes(text)
	if err != nil {
		c.why = err
		return nil
	}
	return a
}

func (r *reader) typeName(b []byte) string {
	if t, known := r.types[string(b)]; known {
		return t.Name()
	}
	return string(b)
}

func (r *reader) identity(c *cursor) *message.Identity {
	text := c.bytes(c.half())
	if last := r.last.Load(); last != nil && last.text == string(text) {
		return last.id
	}
	in := cursor{b: text}
	id := in.identity()
	if in.bad || len(in.b) > 0 {
		c.fail()
		return nil
	}
	r.last.Store(&knownIdentity{string(text), id})
	return id
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

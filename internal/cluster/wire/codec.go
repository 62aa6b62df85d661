package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// ErrMalformed is what every decoding error wraps.
var ErrMalformed = errors.New("wire: malformed message")

// Encode returns the bytes of a request, without its kind.
func Encode(r Request) []byte { return r.append(nil) }

// Append adds the bytes of a request to b.
func Append(b []byte, r Request) []byte { return r.append(b) }

// AppendAnswer adds the bytes of an answer to b.
func AppendAnswer(b []byte, a Answer) []byte { return a.append(append(b, byte(a.code()))) }

// EncodeAnswer returns the bytes of an answer.
func EncodeAnswer(a Answer) []byte { return AppendAnswer(nil, a) }

func appendUint(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

func appendString(b []byte, s string) []byte {
	return append(appendUint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendEpoch(b []byte, e membership.Epoch) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(e))
}

func appendKey(b []byte, k membership.Key) []byte {
	return appendUint(appendUint(b, k.Timeline), k.Number)
}

func appendDuration(b []byte, d time.Duration) []byte { return appendUint(b, uint64(max(d, 0))) }

func appendHead(b []byte, h Head) []byte {
	return appendKey(appendEpoch(appendEpoch(b, h.From), h.To), h.Key)
}

func appendSlots(b []byte, s Slots) []byte {
	b = appendUint(b, uint64(len(s)))
	for _, w := range s {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b
}

func appendEntry(b []byte, e Entry) []byte {
	b = appendUint(appendEpoch(b, e.Epoch), e.Reg)
	return appendBool(appendBool(b, e.Node), e.Unsure)
}

func appendView(b []byte, v *membership.View) []byte {
	if v == nil {
		return appendBool(b, false)
	}
	b = appendKey(appendBool(b, true), v.Key())
	b = appendUint(b, uint64(len(v.Members())))
	for _, m := range v.Members() {
		b = appendString(b, m.Name)
		b = appendEpoch(b, m.Epoch)
		b = appendString(b, m.Addr)
		b = appendBool(b, m.Leaving)
		b = appendBool(b, m.Types != nil)
		b = appendUint(b, uint64(len(m.Types)))
		for _, t := range m.Types {
			b = appendString(b, t)
		}
	}
	return b
}

// reader takes a message apart. The first fault stays and everything after it reads as zero.
type reader struct {
	b     []byte
	err   error
	items int // of all lists so far
}

// maxItems bounds the items of all lists of a message, because an item takes more room in memory than on the
// wire. The largest frame, of 4 MiB, holds as many of 16 bytes, which is a claim of an address of ten letters.
const maxItems = 4 << 20 / 16

// atOnce is how many items of a list room is made for before they have been read.
const atOnce = 4096

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s, %d bytes before its end", ErrMalformed, what, len(r.b))
	}
	r.b = nil
}

// done returns the fault, or that bytes are left over.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("bytes left over")
	}
	return r.err
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail("no number")
		return 0
	}
	r.b = r.b[size:]
	return n
}

// count reads how many items follow, each of at least size bytes: more than the bytes can hold, or than any
// message has, is a fault.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.b)/size) {
		r.fail("more items than bytes")
		return 0
	}
	if r.items += int(n); r.items > maxItems {
		r.fail(fmt.Sprintf("more than %d items", maxItems))
		return 0
	}
	return int(n)
}

// list reads a list of items, each of at least size bytes. It ends with the first that is none.
func list[T any](r *reader, size int, read func(*reader) T) []T {
	n := r.count(size)
	items := make([]T, 0, min(n, atOnce))
	for range n {
		it := read(r)
		if r.err != nil {
			return nil
		}
		if len(items) == cap(items) { // the first ones were honest
			items = append(make([]T, 0, n), items...)
		}
		items = append(items, it)
	}
	return items
}

func (r *reader) string() string {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail("a text longer than the bytes")
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// maxAddr is the greatest length of an address in bytes, as package address has it.
const maxAddr = 4096

// addr reads the address of something. None is empty, and none is longer than an address may be: what remembers
// addresses is bounded by their number.
func (r *reader) addr() string {
	s := r.string()
	switch {
	case s == "":
		r.fail("an empty address")
	case len(s) > maxAddr:
		r.fail("an address that is too long")
		return ""
	}
	return s
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("too short")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) bool() bool {
	switch r.byte() {
	case 0:
		return false
	case 1:
		return true
	}
	r.fail("no truth value")
	return false
}

func (r *reader) word() uint64 {
	if len(r.b) < 8 {
		r.fail("too short")
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *reader) epoch() membership.Epoch { return membership.Epoch(r.word()) }

func (r *reader) key() membership.Key {
	return membership.Key{Timeline: r.uint(), Number: r.uint()}
}

func (r *reader) duration() time.Duration {
	d := time.Duration(r.uint())
	if d < 0 {
		r.fail("no duration")
		return 0
	}
	return d
}

// small reads a number that counts slots or members.
func (r *reader) small() int {
	n := r.uint()
	if n > 1<<20 {
		r.fail("number too large")
		return 0
	}
	return int(n)
}

// load reads how many node hubs a silo serves.
func (r *reader) load() int {
	n := r.uint()
	if n > math.MaxInt32 {
		r.fail("number too large")
		return 0
	}
	return int(n)
}

func (r *reader) head() Head { return Head{From: r.epoch(), To: r.epoch(), Key: r.key()} }

func (r *reader) slots() Slots {
	n := r.count(8)
	if n == 0 {
		return nil
	}
	s := make(Slots, n)
	for i := range s {
		s[i] = r.word()
	}
	return s
}

func (r *reader) entry() Entry {
	return Entry{Epoch: r.epoch(), Reg: r.uint(), Node: r.bool(), Unsure: r.bool()}
}

func (r *reader) view() *membership.View {
	if !r.bool() {
		return nil
	}
	key, members := r.key(), list(r, memberSize, (*reader).member)
	if r.err != nil {
		return nil
	}
	v, err := membership.NewView(key, members)
	if err != nil {
		r.fail(err.Error())
		return nil
	}
	return v
}

const memberSize = 14 // the least bytes of a member, which has a name

func (r *reader) member() membership.Member {
	m := membership.Member{Name: r.string(), Epoch: r.epoch(), Addr: r.string(), Leaving: r.bool()}
	listed := r.bool()
	if types := list(r, 1, (*reader).string); listed {
		m.Types = types
	} else if len(types) > 0 {
		r.fail("types without a list")
	}
	return m
}

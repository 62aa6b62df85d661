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
	b   []byte
	err error
}

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

// count reads how many items follow, each of at least size bytes: more than the bytes can hold is a fault.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.b)/size) {
		r.fail("more items than bytes")
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	n := r.count(1)
	if r.err != nil {
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
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
	key := r.key()
	members := make([]membership.Member, 0, r.count(13))
	for range cap(members) {
		m := membership.Member{Name: r.string(), Epoch: r.epoch(), Addr: r.string(), Leaving: r.bool()}
		listed, n := r.bool(), r.count(1)
		if listed {
			m.Types = make([]string, 0, n)
		} else if n > 0 {
			r.fail("types without a list")
		}
		for range n {
			m.Types = append(m.Types, r.string())
		}
		if r.err != nil {
			return nil
		}
		members = append(members, m)
	}
	v, err := membership.NewView(key, members)
	if err != nil {
		r.fail(err.Error())
		return nil
	}
	return v
}

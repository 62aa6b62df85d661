package transport

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The handshake is one message each way: the dialler's hello, the accepter's welcome. Both start with
// magic, wire version u16 and length u16 of the rest; this prefix is the same in every version, so that
// versions can refuse each other by name. A string is its length u8 and its bytes.
//
//	hello:   epoch u64, generation u64, target epoch u64, largest body u32, cluster, name, address
//	welcome: verdict u8, detail u64, epoch u64, largest body u32, cluster, name
const (
	magic        = "hubm"
	prefixSize   = 8
	maxHandshake = 1 << 10
)

type hello struct {
	version       uint16
	epoch         uint64
	generation    uint64 // counts the connections that the silo has dialled
	target        uint64
	maxBody       uint32
	cluster, name string
	addr          string
}

type verdict uint8

const (
	welcomed verdict = iota
	otherVersion
	otherCluster
	otherEpoch
	staleGeneration // detail: the generation that was accepted
	verdicts
)

type welcome struct {
	version       uint16
	verdict       verdict
	detail        uint64
	epoch         uint64
	maxBody       uint32
	cluster, name string
}

// judge is the accepter's decision on a hello: what it answers, and why it refuses. accepted is the
// newest generation of that epoch so far.
func (w welcome) judge(h hello, accepted uint64) (welcome, error) {
	switch {
	case h.version != w.version:
		w.verdict = otherVersion
		return w, &VersionError{Ours: w.version, Theirs: h.version}
	case h.cluster != w.cluster:
		w.verdict = otherCluster
		return w, &ClusterError{Ours: w.cluster, Theirs: h.cluster}
	case h.target != w.epoch || w.epoch == 0 || h.epoch == 0:
		w.verdict = otherEpoch
		return w, &EpochError{Want: h.target, Have: w.epoch}
	case h.generation <= accepted:
		w.verdict, w.detail = staleGeneration, accepted
		return w, &StaleError{Generation: h.generation, Accepted: accepted}
	}
	return w, nil
}

// judge is the dialler's decision on the welcome that its hello got.
func (h hello) judge(w welcome) error {
	switch {
	case w.version != h.version:
		return &VersionError{Ours: h.version, Theirs: w.version}
	case w.cluster != h.cluster:
		return &ClusterError{Ours: h.cluster, Theirs: w.cluster}
	case w.verdict == staleGeneration:
		return &StaleError{Generation: h.generation, Accepted: w.detail}
	case w.verdict != welcomed || w.epoch != h.target:
		return &EpochError{Want: h.target, Have: w.epoch}
	}
	return nil
}

func (h hello) append(to []byte) []byte {
	at := len(to)
	to = appendPrefix(to, h.version)
	to = binary.BigEndian.AppendUint64(to, h.epoch)
	to = binary.BigEndian.AppendUint64(to, h.generation)
	to = binary.BigEndian.AppendUint64(to, h.target)
	to = binary.BigEndian.AppendUint32(to, h.maxBody)
	return closePrefix(appendText(to, h.cluster, h.name, h.addr), at)
}

func (w welcome) append(to []byte) []byte {
	at := len(to)
	to = append(appendPrefix(to, w.version), byte(w.verdict))
	to = binary.BigEndian.AppendUint64(to, w.detail)
	to = binary.BigEndian.AppendUint64(to, w.epoch)
	to = binary.BigEndian.AppendUint32(to, w.maxBody)
	return closePrefix(appendText(to, w.cluster, w.name), at)
}

func appendPrefix(to []byte, version uint16) []byte {
	return append(binary.BigEndian.AppendUint16(append(to, magic...), version), 0, 0)
}

func closePrefix(message []byte, at int) []byte {
	binary.BigEndian.PutUint16(message[at+prefixSize-2:], uint16(len(message)-at-prefixSize))
	return message
}

func appendText(to []byte, texts ...string) []byte {
	for _, s := range texts {
		to = append(append(to, byte(len(s))), s...)
	}
	return to
}

// readHello reads a hello of any version; one that is not ours carries its version alone.
func readHello(in io.Reader, ours uint16) (hello, error) {
	version, rest, err := readMessage(in)
	if err != nil || version != ours {
		return hello{version: version}, err
	}
	f := fields{rest: rest}
	h := hello{version: version, epoch: f.u64(), generation: f.u64(), target: f.u64(), maxBody: f.u32(), cluster: f.text(), name: f.text(), addr: f.text()}
	return h, f.end("hello")
}

// readWelcome is like readHello.
func readWelcome(in io.Reader, ours uint16) (welcome, error) {
	version, rest, err := readMessage(in)
	if err != nil || version != ours {
		return welcome{version: version}, err
	}
	f := fields{rest: rest}
	w := welcome{version: version, verdict: verdict(f.u8()), detail: f.u64(), epoch: f.u64(), maxBody: f.u32(), cluster: f.text(), name: f.text()}
	if w.verdict >= verdicts {
		return w, &FrameError{fmt.Sprintf("verdict %d in a welcome", w.verdict)}
	}
	return w, f.end("welcome")
}

func readMessage(in io.Reader) (uint16, []byte, error) {
	var prefix [prefixSize]byte
	if _, err := io.ReadFull(in, prefix[:]); err != nil {
		return 0, nil, err
	}
	if string(prefix[:4]) != magic {
		return 0, nil, &FrameError{"not a silo: the connection does not start as one of ours, or one side uses TLS and the other does not"}
	}
	size := binary.BigEndian.Uint16(prefix[6:])
	if size > maxHandshake {
		return 0, nil, &FrameError{fmt.Sprintf("a handshake of %d bytes", size)}
	}
	rest := make([]byte, size)
	if _, err := io.ReadFull(in, rest); err != nil {
		return 0, nil, inside(err)
	}
	return binary.BigEndian.Uint16(prefix[4:]), rest, nil
}

// fields takes values off a message; past its end they are zero and end reports it.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) take(n int) []byte {
	if len(f.rest) < n {
		f.short, f.rest = true, nil
		return make([]byte, n)
	}
	got := f.rest[:n]
	f.rest = f.rest[n:]
	return got
}

func (f *fields) u8() uint8    { return f.take(1)[0] }
func (f *fields) u32() uint32  { return binary.BigEndian.Uint32(f.take(4)) }
func (f *fields) u64() uint64  { return binary.BigEndian.Uint64(f.take(8)) }
func (f *fields) text() string { return string(f.take(int(f.u8()))) }

func (f *fields) end(what string) error {
	if f.short || len(f.rest) > 0 {
		return &FrameError{"a " + what + " of the wrong length"}
	}
	return nil
}

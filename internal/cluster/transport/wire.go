package transport

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Version is the version of the frames, at most 255. It changes with any byte of testdata/wire-v1.golden.
const Version uint16 = 1

// A frame is a header and a body: length u32 of what follows it, type u8, class u8, kind u8, id u64,
// body; integers are big-endian.
const (
	headerSize = 15
	afterSize  = headerSize - 4 // of the header, what the length counts

	frameRequest = 1
	frameAnswer  = 2 // class and kind are 0
	frameFailed  = 3 // an answer that cannot be carried; the body is its size u32 and the limit u32
)

type frame struct {
	id    uint64
	body  []byte
	typ   uint8
	class Class
	kind  uint8
}

func (f *frame) appendHeader(to []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(afterSize+len(f.body)))
	to = append(to, f.typ, byte(f.class), f.kind)
	return binary.BigEndian.AppendUint64(to, f.id)
}

func tooLargeFrame(id uint64, size, limit int) frame {
	body := binary.BigEndian.AppendUint32(nil, uint32(size))
	return frame{id: id, typ: frameFailed, body: binary.BigEndian.AppendUint32(body, uint32(limit))}
}

func (f *frame) tooLarge() *TooLargeError {
	return &TooLargeError{Size: int(binary.BigEndian.Uint32(f.body)), Max: int(binary.BigEndian.Uint32(f.body[4:]))}
}

const (
	readBuffer = 64 << 10
	// firstGrowth is what is allocated for a large body before its bytes arrive.
	firstGrowth = 256 << 10
)

// frameReader cuts frames off a stream. A body is a part of its buffer, to be read until the next call of
// next that was not announced by more.
type frameReader struct {
	in      io.Reader
	maxBody int
	buf     []byte
	lo, hi  int // what of buf is read and not yet returned
}

func newFrameReader(in io.Reader, maxBody int) *frameReader {
	return &frameReader{in: in, maxBody: maxBody, buf: make([]byte, readBuffer)}
}

// next returns the next frame. It fails with *FrameError on bytes that no peer of this version sends,
// with io.EOF at an end between frames, and with io.ErrUnexpectedEOF inside one.
func (r *frameReader) next() (frame, error) {
	if err := r.fill(headerSize); err != nil {
		return frame{}, err
	}
	h := r.buf[r.lo:]
	f := frame{typ: h[4], class: Class(h[5]), kind: h[6], id: binary.BigEndian.Uint64(h[7:])}
	size := int(binary.BigEndian.Uint32(h)) - afterSize
	if err := f.check(size, r.maxBody); err != nil {
		return frame{}, err
	}
	r.lo += headerSize
	if size == 0 {
		return f, nil
	}
	if size <= len(r.buf)/2 {
		if err := r.fill(size); err != nil {
			return frame{}, inside(err)
		}
		f.body = r.buf[r.lo : r.lo+size : r.lo+size]
		r.lo += size
		return f, nil
	}
	var err error
	f.body, err = r.large(size)
	return f, err
}

func (f *frame) check(size, maxBody int) error {
	switch {
	case size < 0:
		return &FrameError{fmt.Sprintf("length %d is shorter than a header", size+afterSize)}
	case size > maxBody:
		return &FrameError{(&TooLargeError{Size: size, Max: maxBody}).Error()}
	case f.typ < frameRequest || f.typ > frameFailed:
		return &FrameError{fmt.Sprintf("type %d", f.typ)}
	case f.class >= classes:
		return &FrameError{fmt.Sprintf("class %d", f.class)}
	case f.typ != frameRequest && (f.class != 0 || f.kind != 0):
		return &FrameError{"an answer with a class or a kind"}
	case f.typ == frameFailed && size != 8:
		return &FrameError{fmt.Sprintf("a failed answer of %d bytes", size)}
	}
	return nil
}

// more tells whether a whole frame is in the buffer, so that next does not wait.
func (r *frameReader) more() bool {
	if r.hi-r.lo < headerSize {
		return false
	}
	return uint64(r.hi-r.lo) >= 4+uint64(binary.BigEndian.Uint32(r.buf[r.lo:]))
}

// fill waits until n bytes are in the buffer; n is at most half of it.
func (r *frameReader) fill(n int) error {
	if r.hi-r.lo >= n {
		return nil
	}
	if r.lo == r.hi {
		r.lo, r.hi = 0, 0
	} else if len(r.buf)-r.lo < n {
		r.hi = copy(r.buf, r.buf[r.lo:r.hi])
		r.lo = 0
	}
	for empty := 0; r.hi-r.lo < n; {
		got, err := r.in.Read(r.buf[r.hi:])
		r.hi += got
		switch {
		case r.hi-r.lo >= n:
			return nil
		case err != nil && r.hi > r.lo:
			return inside(err)
		case err != nil:
			return err
		case got > 0:
			empty = 0
		default:
			if empty++; empty > 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// large reads a body that does not fit into the buffer. Space grows with the bytes that arrive: a
// length alone allocates little.
func (r *frameReader) large(size int) ([]byte, error) {
	body := make([]byte, min(size, firstGrowth))
	at := copy(body, r.buf[r.lo:r.hi])
	r.lo += at
	for {
		got, err := io.ReadFull(r.in, body[at:])
		at += got
		if err != nil {
			return nil, inside(err)
		}
		if at == size {
			return body, nil
		}
		grown := make([]byte, min(size, 2*len(body)))
		copy(grown, body)
		body = grown
	}
}

func inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

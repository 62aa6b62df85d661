package transport

import (
	"bytes"
	"net"
	"runtime"
	"sync"
	"time"
)

const (
	writeBuffer = 64 << 10
	// Bodies from largeBody on are written from where they are, not through the buffer.
	largeBody = 16 << 10
)

// keptSpace is the largest space that is kept for the next batch.
const keptSpace = 1 << 20

// space holds the bodies of queued frames, so that queueing one allocates nothing. Its bytes belong to
// whoever has the frames: the queue, and then the writer until they are written.
type space []byte

// keep returns a copy of body, at the end of s unless it is large.
func (s *space) keep(body []byte) []byte {
	if len(body) >= largeBody {
		return bytes.Clone(body)
	}
	at := len(*s)
	*s = append(*s, body...)
	return (*s)[at:len(*s):len(*s)]
}

// emptied returns the space for other bodies; nobody reads the present ones any more.
func (s space) emptied() space {
	if cap(s) > keptSpace {
		return nil
	}
	return s[:0]
}

// frameWriter writes batches of frames, each in as few writes as it can.
type frameWriter struct {
	out   net.Conn
	bound time.Duration
	buf   []byte
	until time.Time // the deadline that is set
}

func newFrameWriter(out net.Conn, bound time.Duration) *frameWriter {
	return &frameWriter{out: out, bound: bound, buf: make([]byte, 0, writeBuffer)}
}

// writeAfter is write of a batch behind bytes that have to be written first.
func (w *frameWriter) writeAfter(rest []byte, batch []frame) error {
	if len(rest) > 0 {
		if err := w.flush(rest); err != nil {
			return err
		}
	}
	return w.write(batch)
}

// write sends the batch and forgets its bodies.
func (w *frameWriter) write(batch []frame) error {
	for i := range batch {
		f := &batch[i]
		if len(w.buf)+headerSize+len(f.body) > writeBuffer && len(w.buf) > 0 {
			if err := w.flush(w.buf); err != nil {
				return err
			}
		}
		w.buf = f.appendHeader(w.buf)
		if len(f.body) < largeBody {
			w.buf = append(w.buf, f.body...)
		} else {
			if err := w.flush(w.buf); err != nil {
				return err
			}
			if err := w.flush(f.body); err != nil {
				return err
			}
		}
		*f = frame{}
	}
	if len(w.buf) == 0 {
		return nil
	}
	return w.flush(w.buf)
}

// company lets goroutines that are ready to run add to a queue of one before it is written: a write
// costs far more than a turn of the scheduler, which is next to nothing when nobody else is ready.
// Measured between two processes with 64 callers: twice the asks a second.
func company(queue *sync.Mutex) {
	queue.Unlock()
	runtime.Gosched()
	queue.Lock()
}

// flush writes p. Its deadline is renewed once it has lost a fifth, so that a busy connection does not
// set a timer for each write.
func (w *frameWriter) flush(p []byte) error {
	if now := time.Now(); w.until.Sub(now) < w.bound*4/5 {
		w.until = now.Add(w.bound)
		if err := w.out.SetWriteDeadline(w.until); err != nil {
			return err
		}
	}
	_, err := w.out.Write(p)
	w.buf = w.buf[:0]
	return err
}

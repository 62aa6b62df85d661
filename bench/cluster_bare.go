package main

import (
	"bufio"
	"crypto/tls"
	order "encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
)

// bareConn is the limit: the least that asks over framed TCP need. A queue and a writer that flushes when it
// runs dry, a reader, and a table of those who wait, in shards. It has no bound but the queue's, no
// deadline, no address, no order across connections, no refusal and no identity.
type bareConn struct {
	conn net.Conn
	out  chan bareFrame
	wait waiters
}

type bareFrame struct {
	id   uint64
	body []byte
}

// waiters match answers with those who ask.
type waiters [64]struct {
	sync.Mutex
	at map[uint64]chan []byte
}

func (w *waiters) init() {
	for i := range w {
		w[i].at = map[uint64]chan []byte{}
	}
}

func (w *waiters) put(id uint64, answer chan []byte) {
	s := &w[id%64]
	s.Lock()
	s.at[id] = answer
	s.Unlock()
}

func (w *waiters) answer(id uint64, body []byte) {
	s := &w[id%64]
	s.Lock()
	answer := s.at[id]
	delete(s.at, id)
	s.Unlock()
	answer <- body
}

// caller returns the asks of one caller, whose requests ask sends.
func (w *waiters) caller(number int, send func(id uint64, body []byte) error) func([]byte) error {
	answer := make(chan []byte, 1)
	id := uint64(number)
	return func(body []byte) error {
		id += 4096
		w.put(id, answer)
		if err := send(id, body); err != nil {
			return err
		}
		return whole(<-answer, body)
	}
}

func whole(got, sent []byte) error {
	if len(got) != len(sent) {
		return errors.New("the echo is not what was sent")
	}
	return nil
}

func newBare(conn net.Conn) *bareConn {
	b := &bareConn{conn: conn, out: make(chan bareFrame, 4096)}
	b.wait.init()
	go b.write()
	return b
}

func (b *bareConn) write() {
	w := bufio.NewWriterSize(b.conn, 64<<10)
	for f := range b.out {
		for more := true; more; {
			var h [12]byte
			order.BigEndian.PutUint32(h[:], uint32(len(f.body)))
			order.BigEndian.PutUint64(h[4:], f.id)
			_, _ = w.Write(h[:]) // an error stays until the flush
			_, _ = w.Write(f.body)
			select {
			case f, more = <-b.out:
			default:
				more = false
			}
		}
		if w.Flush() != nil {
			return
		}
	}
}

func (b *bareConn) read(got func(id uint64, body []byte)) {
	r := bufio.NewReaderSize(b.conn, 64<<10)
	var h [12]byte
	for {
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return
		}
		body := make([]byte, order.BigEndian.Uint32(h[:]))
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		got(order.BigEndian.Uint64(h[4:]), body)
	}
}

// bareRole echoes on one connection.
func bareRole(args []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if secure, err := securityOf(args); err != nil {
		return err
	} else if secure != nil {
		l = tls.NewListener(l, secure)
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			b := newBare(c)
			b.read(func(id uint64, body []byte) { b.out <- bareFrame{id, body} })
		}
	}()
	return alone(l.Addr().String())
}

func dialBare(server *child, secure *tls.Config) (*subject, error) {
	c, err := net.Dial("tcp", server.first)
	if err != nil {
		return nil, err
	}
	if secure != nil {
		c = tls.Client(c, secure)
	}
	b := newBare(c)
	go b.read(b.wait.answer)
	return &subject{close: func() { c.Close() }, caller: func(i int) func([]byte) error {
		return b.wait.caller(i, func(id uint64, body []byte) error {
			b.out <- bareFrame{id, body}
			return nil
		})
	}}, nil
}

//go:build unix

package transport

import (
	"fmt"
	"net"
	"testing"
	"time"
)

func TestAFrameThatDoesNotFitIntoTheKernelIsFinishedByTheWriter(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	d := newDirect(out)
	number := 0
	next := func() frame {
		number++
		return frame{id: uint64(number), typ: frameAnswer, body: fmt.Appendf(nil, "%0*d", largeBody-1-number%100, number)}
	}
	for d.idle() { // nobody reads
		f := next()
		d.write(&f)
	}
	last, written := next(), make(chan error, 1)
	go func() { written <- newFrameWriter(out, time.Minute).writeAfter(d.take(), []frame{last}) }()
	r := newFrameReader(in, 4<<20)
	for i := 1; i <= number; i++ {
		f, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		var body int
		if _, err := fmt.Sscanf(string(f.body), "%d", &body); err != nil || body != i || f.id != uint64(i) {
			t.Fatalf("frame %d is %d with body %d, %v", i, f.id, body, err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

func TestTheFirstOfManyAfterAPauseIsNotAlone(t *testing.T) {
	var c crowd
	turns := func(counts ...int) {
		for _, n := range counts {
			c.now(n)
		}
	}
	turns(1)
	if !c.alone() {
		t.Error("the first one ever is alone")
	}
	turns(0, 1, 2, 1)
	if c.alone() {
		t.Error("there were two")
	}
	turns(0, 1)
	if c.alone() {
		t.Error("there were two the time before")
	}
	turns(0, 1)
	if !c.alone() {
		t.Error("there was one, and one the time before")
	}
}

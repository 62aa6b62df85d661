package membership

import (
	"slices"
	"sync/atomic"
	"time"
)

// Pong is a peer's sign of life.
type Pong struct {
	Load  int           // how many node hubs it serves
	Key   Key           // of the view that it works with
	Heard time.Duration // the age of the last pong that it has had from the asker
	Hears bool          // it promises by Heard: see [Detector.Promise]; Heard means nothing without
}

// Permit says until when this silo may answer from what it holds. Others put a silo out only when they
// have not heard it for [Pace.Vote]: a pong that tells when its sender has heard this silo last also tells
// until when that sender will not vote. Time counts from the sending of a ping, not from the coming of its
// pong, so that a pong that lay waiting while this silo stood still permits nothing; nor does one whose
// sender works with a newer view.
//
// Two votes put a silo out ([Needed]), so all the others but one have to promise; the only other one where
// there is but one. A silo that is alone in its view needs no permit. Where the permit has run out, the
// table can be asked: see [Silo.Confirm].
//
// Its methods are called on the turn, but for Valid.
type Permit struct {
	vote  time.Duration // see [Pace.Vote]
	self  Epoch
	view  *View
	peers map[Epoch]time.Duration

	until atomic.Int64 // on the clock; read off the turn too
}

// forever is the permit of a silo that is alone.
const forever = time.Duration(1<<63 - 1)

// NewPermit returns a permit that has run out. vote is the silence after which a peer votes.
func NewPermit(vote time.Duration) *Permit {
	return &Permit{vote: vote, peers: map[Epoch]time.Duration{}}
}

// Valid tells whether the permit has not run out at a time. Any goroutine may call it.
func (p *Permit) Valid(at time.Duration) bool { return at < time.Duration(p.until.Load()) }

// Heard notes a peer's pong to a ping that was sent at that time.
func (p *Permit) Heard(from Epoch, sent time.Duration, pong Pong) {
	if pong.Hears && p.view.Has(from) && !p.view.Key().Before(pong.Key) {
		p.peers[from] = max(p.peers[from], sent-pong.Heard+p.vote)
		p.settle()
	}
}

// Lost notes that the connection to a peer has broken: perhaps it cannot reach this silo any more either,
// and votes without waiting.
func (p *Permit) Lost(from Epoch) {
	delete(p.peers, from)
	p.settle()
}

// Apply makes a view count: who is no member promises nothing, and to who is none nothing is permitted.
func (p *Permit) Apply(v *View, self Epoch) {
	p.view, p.self = v, self
	for e := range p.peers {
		if !v.Has(e) {
			delete(p.peers, e)
		}
	}
	p.settle()
}

func (p *Permit) settle() { p.until.Store(int64(p.end())) }

func (p *Permit) end() time.Duration {
	if !p.view.Has(p.self) {
		return 0
	}
	var promised []time.Duration
	for _, m := range p.view.Members() {
		if m.Epoch != p.self {
			promised = append(promised, p.peers[m.Epoch])
		}
	}
	needed := Needed(len(promised))
	if needed > len(promised) { // there are not enough others to put this silo out
		return forever
	}
	slices.Sort(promised)
	return promised[needed-1]
}

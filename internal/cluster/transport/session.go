package transport

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const never = math.MaxInt64

// outcome is a call whose end is known and still has to be told.
type outcome struct {
	done func(Answer)
	a    Answer
}

// slot is one request without an answer.
type slot struct {
	done     func(Answer)
	deadline int64 // 0: none
	within   time.Duration
	seq      uint64 // order of Call
	gen      uint32 // raised at each use, so that an old id finds nothing
	next     int32  // free list
	class    Class
	live     bool
	sent     bool // handed to the network, or may have been
}

// session is the requests of one connection from Call to their end: a slab of slots, whose index and
// use number make the id on the wire, and the queue of what is not yet written. It is pure: its owner
// holds the lock, the clock and the connection.
type session struct {
	limits  *Limits
	count   *counters
	peer    Peer
	slots   []slot
	free    int32
	pending int
	crowd   crowd // of those that are pending
	queue   []frame
	space   space // of the bodies in queue
	bytes   int   // of bodies in queue
	seq     uint64
	maxBody int   // what both ends take
	next    int64 // no deadline is earlier
}

func newSession(peer Peer, limits *Limits, count *counters) *session {
	return &session{limits: limits, count: count, peer: peer, free: -1, maxBody: limits.Body, next: never}
}

// add queues a request, or says why it is refused. now is read only when the request has a bound.
func (s *session) add(r *Request, now int64, done func(Answer)) *NotSentError {
	if len(r.Body) > s.maxBody {
		return &NotSentError{Peer: s.peer, Reason: TooLarge, Cause: &TooLargeError{Size: len(r.Body), Max: s.maxBody}}
	}
	reserve := 0
	if r.Class == Ping {
		reserve = pingReserve
	}
	if len(s.queue) >= s.limits.QueueFrames+reserve || s.pending >= s.limits.Pending+reserve ||
		s.bytes+len(r.Body) > s.limits.QueueBytes && r.Class != Ping {
		return &NotSentError{Peer: s.peer, Reason: Overloaded}
	}
	index := s.free
	if index >= 0 {
		s.free = s.slots[index].next
	} else {
		index = int32(len(s.slots))
		s.slots = append(s.slots, slot{})
	}
	at := &s.slots[index]
	s.seq++
	*at = slot{done: done, seq: s.seq, gen: at.gen + 1, class: r.Class, live: true}
	if r.Within > 0 {
		at.within, at.deadline = r.Within, now+int64(r.Within)
		s.next = min(s.next, at.deadline)
	}
	s.pending++
	s.crowd.now(s.pending)
	s.queue = append(s.queue, frame{id: uint64(at.gen)<<32 | uint64(index), body: s.space.keep(r.Body), typ: frameRequest, class: r.Class, kind: r.Kind})
	s.bytes += len(r.Body)
	return nil
}

// take moves the queue into batch, which is empty, and its bodies into in; the queue goes on in the old
// ones. From here on these requests may have reached the peer.
func (s *session) take(batch []frame, in space) ([]frame, space) {
	batch, s.queue = s.queue, batch
	in, s.space = s.space, in.emptied()
	s.bytes = 0
	for i := range batch {
		s.slots[uint32(batch[i].id)].sent = true
		s.count.traffic.sent(len(batch[i].body))
	}
	return batch, in
}

// end frees the slot and returns what has to be told.
func (s *session) end(index int32) func(Answer) {
	at := &s.slots[index]
	done := at.done
	at.done, at.live = nil, false
	at.next, s.free = s.free, index
	s.pending--
	s.crowd.now(s.pending)
	return done
}

// answer returns the function that waits for the id; nil when nobody does any more.
func (s *session) answer(id uint64) func(Answer) {
	index := uint32(id)
	if uint64(index) >= uint64(len(s.slots)) || !s.slots[index].live || s.slots[index].gen != uint32(id>>32) || !s.slots[index].sent {
		s.count.discarded++
		return nil
	}
	s.count.answered++
	return s.end(int32(index))
}

// undeliverable ends a request whose answer exists and cannot be carried.
func (s *session) undeliverable(id uint64, cause error) (outcome, bool) {
	done := s.answer(id)
	if done == nil {
		return outcome{}, false
	}
	s.count.answered--
	s.count.lost++
	return outcome{done, Answer{Err: &LostError{Peer: s.peer, Reason: TooLarge, Cause: cause}}}, true
}

// fail ends the requests that which names (nil: all), in the order of Call: those that were sent are
// lost for that reason, the others were not sent.
func (s *session) fail(which func(*slot) bool, reason Reason, cause error) []outcome {
	lost := &LostError{Peer: s.peer, Reason: reason, Cause: cause}
	notSent := &NotSentError{Peer: s.peer, Reason: reason, Cause: cause}
	return s.finish(which, func(at *slot) Answer {
		if at.sent {
			s.count.lost++
			return Answer{Err: lost}
		}
		s.count.refused[reason]++
		return Answer{Err: notSent}
	})
}

func (s *session) finish(which func(*slot) bool, judge func(*slot) Answer) []outcome {
	var found []int32
	for i := range s.slots {
		if at := &s.slots[i]; at.live && (which == nil || which(at)) {
			found = append(found, int32(i))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b int32) int { return cmp.Compare(s.slots[a].seq, s.slots[b].seq) })
	told := make([]outcome, len(found))
	unsent := false
	for i, index := range found {
		at := &s.slots[index]
		unsent = unsent || !at.sent
		a := judge(at)
		told[i] = outcome{s.end(index), a}
	}
	if unsent {
		s.purge()
	}
	return told
}

// purge takes requests that have ended out of the queue: what is told as not sent never leaves.
func (s *session) purge() {
	s.queue = slices.DeleteFunc(s.queue, func(f frame) bool {
		at := &s.slots[uint32(f.id)]
		gone := !at.live || at.gen != uint32(f.id>>32)
		if gone {
			s.bytes -= len(f.body)
		}
		return gone
	})
}

// suspected ends pending reads.
func (s *session) suspected() []outcome {
	return s.fail(func(at *slot) bool { return at.class == Read }, Suspect, nil)
}

// agree sets the largest body that the peer takes, and ends the requests above it.
func (s *session) agree(maxBody int) []outcome {
	if maxBody >= s.maxBody {
		return nil
	}
	s.maxBody = maxBody
	large := map[uint64]int{}
	for _, f := range s.queue {
		if len(f.body) > maxBody {
			large[s.slots[uint32(f.id)].seq] = len(f.body)
		}
	}
	if len(large) == 0 {
		return nil
	}
	return s.finish(func(at *slot) bool { return large[at.seq] > 0 }, func(at *slot) Answer {
		s.count.refused[TooLarge]++
		return Answer{Err: &NotSentError{Peer: s.peer, Reason: TooLarge, Cause: &TooLargeError{Size: large[at.seq], Max: maxBody}}}
	})
}

// expire ends the requests whose bound has lapsed, and finds the next deadline.
func (s *session) expire(now int64) []outcome {
	if now < s.next {
		return nil
	}
	s.next = never
	return s.finish(func(at *slot) bool {
		if at.deadline == 0 {
			return false
		}
		if at.deadline > now {
			s.next = min(s.next, at.deadline)
			return false
		}
		return true
	}, func(at *slot) Answer {
		s.count.late++
		return Answer{Err: &LateError{Peer: s.peer, Within: at.within, Sent: at.sent}}
	})
}

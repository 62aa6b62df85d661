package transport

import (
	"cmp"
	"slices"
)

// PeerStats is what is known of one incarnation. Counters run since the peer was first used.
// Once nothing is pending, Calls = Answered + Late + Lost + NotSent.
type PeerStats struct {
	Peer
	Connected  bool // the connection that we dialled is open
	Accepted   bool // the peer has a connection to us
	Suspect    bool
	QueueLen   int // requests not yet written
	QueueBytes int
	Pending    int // requests without an answer, the queue included

	Calls, Answered, Late, Lost, NotSent uint64
	Refused                              map[Reason]uint64 // NotSent by reason
	Discarded                            uint64            // answers that came too late
	Fenced                               uint64            // requests that came on an older connection
	Dials, FailedDials, Reconnects       uint64

	// Both connections together.
	FramesIn, FramesOut, BytesIn, BytesOut uint64
}

// counters are the plain numbers behind PeerStats, under the lock of their owner.
type counters struct {
	calls, answered, late, lost, discarded uint64
	refused                                [reasons]uint64
	dials, failedDials, opened             uint64
	traffic                                traffic
}

type traffic struct{ framesIn, framesOut, bytesIn, bytesOut uint64 }

func (t *traffic) sent(body int) {
	t.framesOut++
	t.bytesOut += uint64(headerSize + body)
}

func (t *traffic) received(body int) {
	t.framesIn++
	t.bytesIn += uint64(headerSize + body)
}

func (s *PeerStats) addTraffic(t traffic) {
	s.FramesIn += t.framesIn
	s.FramesOut += t.framesOut
	s.BytesIn += t.bytesIn
	s.BytesOut += t.bytesOut
}

func (c *counters) fill(s *PeerStats) {
	s.Calls, s.Answered, s.Late, s.Lost, s.Discarded = c.calls, c.answered, c.late, c.lost, c.discarded
	for r, n := range c.refused {
		if n == 0 {
			continue
		}
		if s.Refused == nil {
			s.Refused = map[Reason]uint64{}
		}
		s.Refused[Reason(r)] = n
		s.NotSent += n
	}
	s.Dials, s.FailedDials = c.dials, c.failedDials
	if c.opened > 0 {
		s.Reconnects = c.opened - 1
	}
	s.addTraffic(c.traffic)
}

func sortStats(all []PeerStats) {
	slices.SortFunc(all, func(a, b PeerStats) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Epoch, b.Epoch))
	})
}

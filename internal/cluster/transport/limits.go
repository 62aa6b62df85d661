package transport

import "fmt"

// Limits bounds what a transport holds for one peer. A zero field is the default.
type Limits struct {
	Body        int // largest body of a request or answer, in bytes: 4 MiB
	QueueFrames int // requests that are not yet written: 16,384
	QueueBytes  int // their bytes, and those of answers that are not yet written: 32 MiB
	Pending     int // requests without an answer, written or not: 65,536
}

const (
	pingReserve = 64 // pings that fit into a full queue
	// answerFactor times QueueBytes of answers are kept for a peer that does not read; then it is cut off.
	answerFactor = 4
	// redialPause is how long after a failed dial calls are refused with its error, so that many calls
	// to an absent peer are not as many dials. Connect dials always.
	redialPause = 20e6 // 20 ms
)

func (l Limits) orDefaults() (Limits, error) {
	for _, f := range []struct {
		at    *int
		usual int
	}{{&l.Body, 4 << 20}, {&l.QueueFrames, 16384}, {&l.QueueBytes, 32 << 20}, {&l.Pending, 65536}} {
		if *f.at == 0 {
			*f.at = f.usual
		}
	}
	if l.Body < 0 || l.QueueFrames < 0 || l.Pending < 0 || l.QueueBytes < l.Body || l.Body > 1<<30 {
		return l, fmt.Errorf("limits %+v: none may be negative, a body is at most 1 GiB, and the queue must hold one", l)
	}
	return l, nil
}

package transport

// book is what both transports keep of one incarnation that they call: the mark of suspicion, the
// session of the present connection or dial, and the numbers. It is pure; its owner holds the lock.
type book struct {
	peer    Peer
	limits  *Limits
	suspect bool
	shut    error    // set once: every call is refused for it
	s       *session // nil: neither connected nor dialling
	waiters []func(error)
	count   counters

	failedAt int64 // of the last dial, when failure is set
	failure  *DialError
}

// admit refuses a call that must not be queued. It counts the call.
func (b *book) admit(class Class) *NotSentError {
	b.count.calls++
	switch {
	case b.shut != nil:
		return &NotSentError{Peer: b.peer, Reason: shutReason(b.shut), Cause: b.shut}
	case b.suspect && class != Ping:
		return &NotSentError{Peer: b.peer, Reason: Suspect}
	}
	return nil
}

func shutReason(err error) Reason {
	switch err {
	case errClosed:
		return Closed
	case errNoEpoch:
		return NoEpoch
	}
	return Dropped
}

// resting refuses a call that would dial again too soon after a dial that failed.
func (b *book) resting(now int64) *NotSentError {
	if b.failure == nil || now-b.failedAt >= redialPause {
		return nil
	}
	return &NotSentError{Peer: b.peer, Reason: dialReason(b.failure), Cause: b.failure}
}

// refuse counts a refusal and makes it the call's outcome.
func (b *book) refuse(e *NotSentError, done func(Answer)) outcome {
	b.count.refused[e.Reason]++
	return outcome{done, Answer{Err: e}}
}

// dialling starts the session of a new dial.
func (b *book) dialling(to Peer) *session {
	b.peer = to
	b.count.dials++
	b.s = newSession(to, b.limits, &b.count)
	return b.s
}

// opened ends a dial that succeeded. It returns those who waited for it.
func (b *book) opened() []func(error) {
	b.count.opened++
	b.failure = nil
	waiters := b.waiters
	b.waiters = nil
	return waiters
}

// undialled ends a dial that failed. It returns the calls and the connects that waited for it.
func (b *book) undialled(now int64, failure *DialError) ([]outcome, []func(error)) {
	b.count.failedDials++
	b.failedAt, b.failure = now, failure
	return b.end(dialReason(failure), failure)
}

// end closes the session, if there is one, and returns those who waited for it.
func (b *book) end(reason Reason, cause error) ([]outcome, []func(error)) {
	var told []outcome
	if b.s != nil {
		told = b.s.fail(nil, reason, cause)
		b.s = nil
	}
	waiters := b.waiters
	b.waiters = nil
	return told, waiters
}

// mark sets or clears suspicion and returns the reads that it ends.
func (b *book) mark(on bool) []outcome {
	b.suspect = on
	if !on || b.s == nil {
		return nil
	}
	return b.s.suspected()
}

func (b *book) stats() PeerStats {
	s := PeerStats{Peer: b.peer, Suspect: b.suspect}
	b.count.fill(&s)
	if b.s != nil {
		s.QueueLen, s.QueueBytes, s.Pending = len(b.s.queue), b.s.bytes, b.s.pending
	}
	return s
}

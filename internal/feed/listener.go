package feed

import "time"

// Times of the listener (storage.md §6).
const (
	silence  = 3 * time.Second // then it pings itself
	echoWait = 3 * time.Second // then it takes the connection for dead
)

// reconnects are the pauses before the n-th attempt to connect in a row; the last one stays.
var reconnects = [...]time.Duration{
	0, 5 * time.Millisecond, 15 * time.Millisecond, 35 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

func reconnectPause(attempt int) time.Duration { return reconnects[min(attempt, len(reconnects)-1)] }

// listener keeps a connection that does nothing but wake, so that it is never in a transaction and never
// slow. It has no position. The methods are its events; they return what to do, in order.
type listener struct {
	state      listenerState
	connection uint64 // counts connections, so that a late answer is known for one of an earlier one
	attempts   int    // since it was live
	pinged     bool
	due        time.Time // when tick has to be called; zero: never
	gaps       int64     // live connections that were lost
}

type listenerState uint8

const (
	listenerAway    listenerState = iota // dials when due
	listenerDialing                      // a connection is being opened
	listenerReading                      // it LISTENs; the read that follows has not ended
	listenerLive
)

// listenerEffect is what a listener wants done.
type listenerEffect uint8

const (
	listenerDial   listenerEffect = iota + 1 // open a connection
	listenerSync                             // have the reader read, and call read when it has
	listenerWake                             // have the reader read
	listenerPing                             // notify itself
	listenerClose                            // close the connection
	listenerIsLive                           // log it, once a connection
)

// begin is the first event.
func (l *listener) begin(now time.Time) []listenerEffect {
	l.due = now
	return l.tick(now)
}

// tick does what is due.
func (l *listener) tick(now time.Time) []listenerEffect {
	switch {
	case l.due.IsZero() || now.Before(l.due):
		return nil
	case l.state == listenerAway:
		l.state, l.due = listenerDialing, time.Time{}
		l.attempts++
		return []listenerEffect{listenerDial}
	case !l.pinged:
		l.pinged, l.due = true, now.Add(echoWait)
		return []listenerEffect{listenerPing}
	}
	return l.lost(now)
}

// dialed says that the connection is there and LISTENs.
func (l *listener) dialed(now time.Time) []listenerEffect {
	l.state, l.due, l.pinged = listenerReading, now.Add(silence), false
	l.connection++
	return []listenerEffect{listenerSync}
}

// lost says that there is no connection, or none that works.
func (l *listener) lost(now time.Time) []listenerEffect {
	if l.state == listenerLive {
		l.gaps++
	}
	closing := l.state != listenerDialing
	l.state, l.due = listenerAway, now.Add(reconnectPause(l.attempts))
	var effects []listenerEffect
	if closing {
		effects = append(effects, listenerClose)
	}
	return append(effects, l.tick(now)...)
}

// heard says that a notification came. Any one shows that the connection works; none but an echo is without
// news.
func (l *listener) heard(echo bool, now time.Time) []listenerEffect {
	l.pinged, l.due = false, now.Add(silence)
	if echo {
		return nil
	}
	return []listenerEffect{listenerWake}
}

// read says that a read that began after a connection's LISTEN has ended.
func (l *listener) read(connection uint64) []listenerEffect {
	if connection != l.connection || l.state != listenerReading {
		return nil
	}
	l.state, l.attempts = listenerLive, 0
	return []listenerEffect{listenerIsLive}
}

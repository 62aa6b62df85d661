package feed

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// storage §6
func TestTheNotifierSendsAtOnceWhenAloneAndAtMostEveryFiveMilliseconds(t *testing.T) {
	t.Parallel()
	var n notifier
	at := func(ms int) time.Time { return time.Unix(100, int64(ms)*1e6) }
	if !n.committed(at(0)) {
		t.Fatal("alone, it waits")
	}
	if n.committed(at(1)) {
		t.Fatal("two at a time")
	}
	n.sent(true, at(2)) // again
	if n.tick(at(4)) || !n.tick(at(5)) {
		t.Fatal("the gap is not five milliseconds")
	}
	n.sent(true, at(6))
	if n.tick(at(60)) || n.committed(at(7)) || n.tick(at(9)) || !n.tick(at(10)) {
		t.Fatal("the gap is not kept")
	}
	n.sent(true, at(11))
	if !n.committed(at(16)) {
		t.Fatal("alone again, it waits")
	}
}

// storage §6
func TestAFailedWakeUpIsSentAgainWithGrowingPauses(t *testing.T) {
	t.Parallel()
	var n notifier
	now := time.Unix(100, 0)
	n.committed(now)
	var pauses []time.Duration
	for range 7 {
		n.sent(false, now)
		n.committed(now)
		pauses = append(pauses, n.due.Sub(now))
		now = n.due
		if !n.tick(now) {
			t.Fatal("it was given up")
		}
	}
	ms := time.Millisecond
	if diff := cmp.Diff([]time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, time.Second, time.Second}, pauses); diff != "" {
		t.Error(diff)
	}
	n.sent(true, now)
	if !n.due.IsZero() || n.retry != 0 {
		t.Error("it does not rest")
	}
}

// Whatever happens, after each commit a wake-up begins, and two begin no closer than the gap.
func TestEveryCommitIsFollowedByAWakeUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var n notifier
		now := time.Unix(100, 0)
		var last time.Time
		owed := false
		sending := func(send bool) {
			if send {
				if now.Sub(last) < notifyGap {
					t.Fatalf("seed %d: %v after the one before", seed, now.Sub(last))
				}
				last, owed = now, false
			}
		}
		for range 500 {
			now = now.Add(time.Duration(random.IntN(4000)) * time.Microsecond)
			switch random.IntN(3) {
			case 0:
				owed = true
				sending(n.committed(now))
			case 1:
				sending(n.tick(now))
			case 2:
				if n.sending {
					ok := random.IntN(3) > 0
					n.sent(ok, now)
					owed = owed || !ok
				}
			}
			if owed && !n.sending && n.due.IsZero() {
				t.Fatalf("seed %d: a commit is not announced", seed)
			}
		}
	}
}

// storage §6
func TestAListenerReadsAfterListenThenIsLiveAndPingsItselfInSilence(t *testing.T) {
	t.Parallel()
	var l listener
	at := func(s float64) time.Time { return time.Unix(100, 0).Add(time.Duration(s * float64(time.Second))) }
	want := func(got []listenerEffect, want ...listenerEffect) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	want(l.begin(at(0)), listenerDial)
	want(l.dialed(at(0)), listenerSync)
	want(l.heard(false, at(0.1)), listenerWake) // also before the read has ended
	want(l.read(l.connection), listenerIsLive)
	want(l.read(l.connection)) // once
	want(l.tick(at(3)))
	want(l.tick(at(3.1)), listenerPing)
	want(l.heard(true, at(3.2)))
	want(l.tick(at(6.1)))
	want(l.tick(at(6.2)), listenerPing)
	want(l.tick(at(9.1)))
	want(l.tick(at(9.2)), listenerClose, listenerDial) // 3 s without the echo, and at once
	old := l.connection
	want(l.dialed(at(9.3)), listenerSync)
	want(l.read(old)) // the read of the connection before
	want(l.lost(at(9.4)), listenerClose)
	if l.gaps != 1 {
		t.Errorf("%d gaps", l.gaps)
	}
}

// storage §6
func TestAListenerThatFindsNobodyTriesAgainWithGrowingPauses(t *testing.T) {
	t.Parallel()
	var l listener
	now := time.Unix(100, 0)
	l.begin(now)
	var pauses []time.Duration
	for range 11 {
		if effects := l.lost(now); len(effects) != 0 {
			t.Fatal(effects)
		}
		pauses = append(pauses, l.due.Sub(now))
		now = l.due
		if !slices.Equal(l.tick(now), []listenerEffect{listenerDial}) {
			t.Fatal("it was given up")
		}
	}
	ms := time.Millisecond
	if diff := cmp.Diff([]time.Duration{5 * ms, 15 * ms, 35 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms, time.Second, time.Second, time.Second, time.Second}, pauses); diff != "" {
		t.Error(diff)
	}
}

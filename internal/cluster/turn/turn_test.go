package turn

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTimersRunInTheOrderOfTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		defer l.Stop()
		var ran []time.Duration
		l.Do(func() {
			for _, d := range []time.Duration{30, 10, 20, -5} {
				l.After(d*time.Millisecond, func() { ran = append(ran, l.Now()) })
			}
		})
		<-time.After(time.Second)
		synctest.Wait()
		want := []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond}
		l.Do(func() {
			if !slices.Equal(ran, want) {
				t.Errorf("ran at %v, want %v", ran, want)
			}
		})
	})
}

// protocol §11
func TestOneStepRunsAtATime(t *testing.T) {
	l := New()
	var inside atomic.Int32
	step := func() {
		if inside.Add(1) != 1 {
			t.Error("two steps at once")
		}
		inside.Add(-1)
	}
	done := make(chan struct{})
	const callers, rounds = 8, 200
	for range callers {
		go func() {
			for range rounds {
				l.Do(step)
				l.Do(func() { l.After(0, step) })
			}
			done <- struct{}{}
		}()
	}
	for range callers {
		<-done
	}
	l.Stop()
}

func TestAfterNeverRunsBeforeItHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		defer l.Stop()
		var ran atomic.Bool
		l.Do(func() {
			l.After(time.Millisecond, func() { ran.Store(true) })
			<-time.After(time.Millisecond) // both fire at one moment; the step waits for this one to end
			if ran.Load() {
				t.Error("a step ran inside the one that asked for it")
			}
		})
		<-time.After(time.Millisecond)
		synctest.Wait()
		if !ran.Load() {
			t.Error("it never ran")
		}
	})
}

func TestWhatWasStoppedDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		defer l.Stop()
		l.Do(func() {
			stop := l.After(time.Millisecond, func() { t.Error("it was stopped before its time") })
			stop()
			stop() // a second time does nothing
			stop = l.After(time.Millisecond, func() { t.Error("it was stopped after it had fired, before it ran") })
			<-time.After(time.Millisecond)
			stop()
		})
		var again func()
		l.Do(func() { again = l.After(time.Millisecond, func() {}) })
		<-time.After(2 * time.Millisecond)
		l.Do(func() { again() }) // after it has run it does nothing
	})
}

func TestStopEndsEveryTimerAndNothingRunsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		late := func() { t.Error("a timer ran after Stop") }
		l.Do(func() {
			l.After(time.Hour, late)
			l.After(time.Second, late)
		})
		l.Stop()
		l.Do(func() { l.After(0, late) })
		<-time.After(2 * time.Hour)
	})
}

func TestStopWaitsForTheStepThatRuns(t *testing.T) {
	l := New()
	began, stopping, finished := make(chan struct{}), make(chan struct{}), false
	l.Do(func() {
		l.After(0, func() {
			close(began)
			<-stopping
			finished = true
		})
	})
	<-began
	stopped := make(chan struct{})
	go func() {
		close(stopping)
		l.Stop()
		if !finished { // the race detector sees it as well where Stop does not wait
			t.Error("Stop returned while a step ran")
		}
		close(stopped)
	}()
	<-stopped
}

// What a silo asks itself is in order, as on a connection. The goroutines of all of these wait for the turn at once,
// and a mutex gives it to them in any order.
func TestWhatIsDueAtOnceRunsInItsOrder(t *testing.T) {
	l := New()
	const n = 2000
	var ran []int
	done := make(chan struct{})
	l.Do(func() {
		for i := range n {
			stop := l.After(0, func() {
				ran = append(ran, i)
				if i == n-1 {
					close(done)
				}
			})
			if i%10 == 5 {
				stop()
			}
		}
		for range 100 {
			runtime.Gosched() // they come to wait
		}
	})
	<-done
	l.Stop()
	if len(ran) != n-n/10 || !slices.IsSorted(ran) {
		t.Errorf("%d ran, in order: %v", len(ran), slices.IsSorted(ran))
	}
}

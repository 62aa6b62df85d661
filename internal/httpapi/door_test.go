package httpapi

import (
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// decision 6, issue 5: what was taken is answered
func TestAListenerThatIsShutTakesNobodyAndIsClosedUnderNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a means for it")
	}
	said := func(shut bool) error {
		l, err := Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		in, err := net.Dial("tcp", l.Addr().String()) // its system has opened it, and nobody has accepted it
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if shut {
			done := make(chan struct{})
			go func() {
				defer close(done)
				Shut(l)
			}()
			late, err := net.DialTimeout("tcp", l.Addr().String(), 100*time.Millisecond)
			for err == nil { // it was before the door was shut
				late.Close()
				late, err = net.DialTimeout("tcp", l.Addr().String(), 100*time.Millisecond)
			}
			if !os.IsTimeout(err) {
				t.Errorf("whoever dials a listener that is shut is answered: %v", err)
			}
			select {
			case <-done:
				t.Error("it was shut while somebody had not been accepted")
			default:
			}
			for waits := true; waits; {
				c, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				waits = c.RemoteAddr().String() != in.LocalAddr().String()
				_, _ = io.WriteString(c, "hello") // to one that has gone, too
				c.Close()
			}
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					c.Close()
				}
			}()
			<-done
		}
		l.Close()
		got, err := io.ReadAll(in)
		if err == nil && string(got) != "hello" {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if err := said(true); err != nil {
		t.Errorf("whoever was in was cut off: %v", err)
	}
	if err := said(false); err == nil {
		t.Error("this control no longer shows the fault")
	}
}

func TestAListenerThatCanNotBeShutHoldsNobodyUp(t *testing.T) {
	Shut(struct{ net.Listener }{}) // of somebody's own
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	if Shut(l); time.Since(began) > 5*time.Second {
		t.Error("it waited")
	}
}

// decision 6, issue 5: idle connections are closed last
func TestConnectionsThatWaitForTheirNextRequestAreWaitedForAndNoLongerThanIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guests
		a, b := net.Pipe()
		began := time.Now()
		after := func(want time.Duration) {
			t.Helper()
			if took := time.Since(began); took != want {
				t.Errorf("after %v, want %v", took, want)
			}
		}
		gone := func(most, idle time.Duration) {
			began = time.Now()
			g.Gone(most, idle)
		}
		gone(time.Minute, time.Minute)
		after(0)
		g.State(a, http.StateNew)
		gone(time.Second, time.Minute)
		after(time.Second)
		for _, c := range []net.Conn{a, b} {
			g.State(c, http.StateActive)
			gone(time.Second, 0)
			after(time.Second)
			g.State(c, http.StateIdle)
		}
		gone(time.Minute, 0)
		after(0)
		gone(time.Minute, time.Second)
		after(time.Second)
		go func() {
			<-time.After(time.Second)
			g.State(a, http.StateActive)
			<-time.After(time.Second)
			g.State(a, http.StateClosed)
			<-time.After(time.Second)
			g.State(b, http.StateClosed)
		}()
		gone(time.Minute, 1500*time.Millisecond) // the one that was asked for is answered
		after(2 * time.Second)
		gone(time.Minute, time.Minute)
		after(time.Second)
	})
}

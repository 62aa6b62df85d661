package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

type recorded struct {
	log  *[]string
	name string
	fail error
}

func (r recorded) Start(context.Context) error {
	*r.log = append(*r.log, "+"+r.name)
	return r.fail
}

func (r recorded) Stop(context.Context) error {
	*r.log = append(*r.log, "-"+r.name)
	return nil
}

func TestAGroupStopsInReverseWhatItStarted(t *testing.T) {
	var log []string
	var g Group
	g.Add("a", recorded{&log, "a", nil})
	g.Add("b", recorded{&log, "b", nil})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Stop(t.Context()), g.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(log, []string{"+a", "+b", "-b", "-a"}) {
		t.Fatal(log)
	}
}

func TestAFailedStartStopsWhatWasStartedAndNamesTheCulprit(t *testing.T) {
	var log []string
	var g Group
	g.Add("a", recorded{&log, "a", nil})
	g.Add("b", recorded{&log, "b", errors.New("port in use")})
	g.Add("c", recorded{&log, "c", nil})
	err := g.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "start b: port in use") {
		t.Fatal(err)
	}
	if !slices.Equal(log, []string{"+a", "+b", "-a"}) {
		t.Fatal(log)
	}
}

func TestBackoffDoublesUpToItsCapAndStartsOverAfterReset(t *testing.T) {
	var b Backoff
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000} {
		if got := b.Next(); got != want*time.Millisecond {
			t.Fatalf("got %v, want %vms", got, want)
		}
	}
	for range 100 {
		b.Next()
	}
	b.Reset()
	b.Jitter = true
	if got := b.Next(); got < 50*time.Millisecond || got > 100*time.Millisecond {
		t.Fatalf("jittered first delay %v", got)
	}
}

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// content reads a file through a silo, once.
func (p *silo) content(path string) (status int, body map[string]any, took time.Duration) {
	p.t.Helper()
	ctx, cancel := context.WithTimeoutCause(p.t.Context(), patience, errors.New("a content read was not answered"))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/content/"+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	began := time.Now()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(text, &body); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
	}
	return resp.StatusCode, body, time.Since(began)
}

// lines are the records of a log that hold all parts.
func (l *logbook) lines(parts ...string) (found []map[string]any) {
	for line := range strings.Lines(l.String()) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		var record map[string]any
		if all && json.Unmarshal([]byte(line), &record) == nil {
			found = append(found, record)
		}
	}
	return found
}

//
// The owner runs and answers, and its answers are lost: the reader says so within its budget, and the control is as
// fast as ever. The controls the other way are in packages content and httpapi (B-1, C-1).
func TestAReadWhoseAnswerIsLostOnItsWaySaysWhatWasObserved(t *testing.T) {
	t.Parallel()
	w, l := newTown(t), newLinks(t)
	all := w.startLinked(l, "a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	a.owned([]string{"acme/doc"})
	if _, err := a.client().Upload(t.Context(), "acme/doc", "content", "x.txt", strings.NewReader("here")); err != nil {
		t.Fatal(err)
	}
	for _, p := range all { // every replica is asked by its own address
		if status, body, _ := p.content("acme/doc/content/x.txt"); status != http.StatusOK {
			t.Fatalf("%s answers %d %v", p.name, status, body)
		}
	}
	l.cut("a", "b")
	status, body, took := b.content("acme/doc/content/x.txt")
	if status == http.StatusOK { // a frame had left before the cut
		status, body, took = b.content("acme/doc/content/x.txt")
	}
	if status != http.StatusServiceUnavailable || body["retryAfter"] == nil || took > 10*time.Second {
		t.Errorf("after %v: %d %v", took, status, body)
	}
	t.Logf("after %v: %v", took, body)
	if status, body, took := b.content("acme/none/content/x.txt"); status != http.StatusNotFound || took > ride {
		t.Errorf("the control is answered %d after %v: %v", status, took, body)
	}
	if status, body, _ := c.content("acme/doc/content/x.txt"); status != http.StatusOK {
		t.Errorf("whoever is not cut off is answered %d %v", status, body)
	}
	l.heal("a", "b")
	wait(t, "the read to be served", func() error {
		if status, body, _ := b.content("acme/doc/content/x.txt"); status != http.StatusOK {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
}

// A-2; C33, C35
// One event of the membership has every claim made again: the next read is served, by the process that ran before.
func TestAfterAnEventOfTheMembershipTheNextReadIsServedWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	a.owned([]string{"acme/doc"})
	if _, err := a.client().Upload(t.Context(), "acme/doc", "content", "x.txt", strings.NewReader("here")); err != nil {
		t.Fatal(err)
	}
	starts := len(a.log.lines("This silo has joined the cluster"))
	c.kill()
	wait(t, "the read to be served by whoever is left", func() error {
		if status, body, _ := b.content("acme/doc/content/x.txt"); status != http.StatusOK {
			return fmt.Errorf("%d %v", status, body)
		}
		return nil
	})
	b.sees("a", "b")
	if x := b.why("acme/doc"); x.Cluster.Owner == nil || x.Cluster.Owner.Silo != "a" {
		t.Errorf("its owner is %+v", x.Cluster)
	}
	if n := len(a.log.lines("This silo has joined the cluster")); n != starts {
		t.Errorf("the owner has joined %d times; want %d", n, starts)
	}
	wait(t, "every claim to have landed again", func() error {
		s, err := a.status()
		if err == nil && s.Totals.Claims.ProcessesLanded != s.Totals.Claims.Processes {
			err = fmt.Errorf("claims: %+v", s.Totals.Claims)
		}
		return err
	})
}

// edge §7; messaging §2.1: what operators search logs for is found in the logs of a real run, and what must be empty is.
// C38
func TestTheQueriesOfOperatorsFindWhatTheyShouldInTheLogs(t *testing.T) {
	t.Setenv("HUBMESH_TESTING", "1")
	w := newTown(t)
	var all []*silo
	for _, name := range []string{"a", "b"} {
		all = append(all, w.begin(name, "--fault", "start:acme/slow=30s"))
	}
	for _, p := range all {
		if err := p.up(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all {
		p.ready()
		p.sees("a", "b")
	}
	a, b := all[0], all[1]
	a.create("acme", "acme/doc", "acme/slow")
	a.read("acme/doc")
	if status, body, took := b.content("acme/slow/content/x.txt"); status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(body["clause"]), "STILL STARTING") || took > 10*time.Second {
		t.Errorf("after %v: %d %v", took, status, body)
	}
	a.kill()
	wait(t, "a node of the one that was killed", func() error {
		_, err := b.client().Patch(t.Context(), "acme/doc", []byte(`{"description":"x"}`), client.If{})
		return err
	})
	b.sees("b")
	for query, want := range map[string]int{
		"Content read timed out for":                     1,
		"PostgreSQL LISTEN started on mesh_node_changes": 1,
		"This silo has joined the cluster":               1,
		"falling back to the stream publish":             0,
		"Content read timed out for '{":                  0,
		"did not land within its initial budget":         0,
		"This silo was put out of the cluster":           0,
		`"level":"ERROR"`:                                0,
		"a request failed":                               0,
		"handler panic":                                  0,
	} {
		if got := b.log.lines(query); len(got) != want {
			t.Errorf("'%s' finds %d lines; want %d: %v", query, len(got), want, got)
		}
	}
	for _, record := range b.log.lines("Content read timed out for") {
		for _, fact := range []string{"time", "level", "path", "target", "process", "bound", "elapsed_ms", "reported_by", "clause", "line"} {
			if record[fact] == nil {
				t.Errorf("the record of a read that timed out has no %s: %v", fact, record)
			}
		}
	}
}

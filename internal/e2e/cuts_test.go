package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// outcomes counts the answers to reads.
type outcomes struct {
	answered, refused int
	early             int // of the refused ones, those that the silo did not ask again for as long as it may
}

func (o outcomes) String() string {
	return fmt.Sprintf("%d answered, %d refused, %d of them early", o.answered, o.refused, o.early)
}

// ride is for how long a silo at least asks again before it tells that a node's silo is not there: the bound
// "ride" without the longest pause between two questions.
const ride = 3*time.Second - 160*time.Millisecond

// answered reads nodes through a silo until stop, and minds that no read is without an outcome and that none gives
// less than was acknowledged before it was asked for.
func (p *silo) answered(w *writers, paths ...string) (stop func() outcomes) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var work sync.WaitGroup
	var mu sync.Mutex
	var got outcomes
	old := 0
	for _, path := range paths {
		work.Go(func() {
			c := p.client()
			for ctx.Err() == nil {
				w.mu.Lock()
				least := w.last[path]
				w.mu.Unlock()
				began := time.Now()
				n, err := c.Get(ctx, path)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				switch {
				case err == nil && n.Version < least:
					p.t.Errorf("%s answers version %d of '%s' where %d had been acknowledged", p.name, n.Version, path, least)
					if old++; old == 1 {
						text, err := c.Why(ctx, path)
						p.t.Logf("why: %s %v", text, err)
					}
				case err == nil:
					got.answered++
				case transient(err):
					got.refused++
					if time.Since(began) < ride {
						got.early++
					}
				default:
					p.t.Errorf("%s answers for '%s': %v", p.name, path, err)
				}
				if took := time.Since(began); took > patience/2 {
					p.t.Errorf("%s took %v to answer for '%s': %v", p.name, took, path, err)
				}
				mu.Unlock()
				pause := 2 * time.Millisecond // the silos have this machine, too
				if err != nil {
					pause = 20 * time.Millisecond // as the answer asks for, and sooner
				}
				<-time.After(pause)
			}
		})
	}
	p.t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	return func() outcomes {
		cancel()
		work.Wait()
		return got
	}
}

// issue 5: a silo cut off both ways, and one way; protocol.md §2
func TestASiloThatIsCutOffServesNothingOldAndItsNodesAnswerElsewhere(t *testing.T) {
	for name, ways := range map[string][][2]string{
		"both ways":           {{"a", "b"}, {"a", "c"}, {"b", "a"}, {"c", "a"}},
		"what it sends":       {{"a", "b"}, {"a", "c"}},
		"what is sent to it":  {{"b", "a"}, {"c", "a"}},
		"both ways, from one": {{"a", "b"}, {"b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l := newTown(t), newLinks(t)
			all := w.startLinked(l, "a", "b", "c")
			a, b, c := all[0], all[1], all[2]
			nodes := paths(4)
			a.owned(nodes)
			writing := c.write(nodes...)
			writing.further(t, 3)
			atA, atB := a.answered(writing, nodes...), b.answered(writing, nodes...)
			for _, way := range ways {
				l.cut(way[0], way[1])
			}
			cut := time.Now()
			writing.further(t, 3)
			t.Logf("written again %v after the cut", time.Since(cut))
			<-time.After(longer(2500*time.Millisecond, 30*time.Second) - time.Since(cut)) // the fault itself
			writing.further(t, 3)
			if len(ways) > 2 || ways[0][0] != ways[1][1] { // whoever is cut off from one alone stays
				b.sees("b", "c")
			}
			for _, way := range ways {
				l.heal(way[0], way[1])
			}
			healed := time.Now()
			for _, p := range all {
				p.ready()
				p.sees("a", "b", "c")
			}
			t.Logf("whole again %v after the heal", time.Since(healed))
			writing.further(t, 3)
			gotA, gotB := atA(), atB()
			t.Logf("reads at a: %v; at b: %v", gotA, gotB)
			if gotB.early > 0 && !b.log.has("This silo was put out of the cluster") { // b asks again until the nodes are served elsewhere, as long as it may
				t.Errorf("%d reads were refused at b before it had asked for %v", gotB.early, ride)
			}
			writing.end(t, a)
		})
	}
}

// issue 5: a peer that sends garbage, a truncated frame, a 2 GiB length
func TestWhoeverSpeaksGarbageToASiloDisturbsNobody(t *testing.T) {
	t.Parallel()
	w, l := newTown(t), newLinks(t)
	all := w.startLinked(l, "a", "b")
	a, b := all[0], all[1]
	nodes := paths(2)
	a.owned(nodes)
	writing := b.write(nodes...)
	writing.further(t, 2)
	hello := []byte{0x16, 3, 1, 0x40, 0} // a record of 16 KiB, of which no more comes
	for name, said := range map[string][]byte{
		"nothing": nil, "text": []byte("GET / HTTP/1.1\r\n\r\n"), "a length of 2 GiB": {0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0},
		"a truncated record": hello, "zeros": make([]byte, 1<<20),
	} {
		for range 20 {
			if err := speak(l.at["a"].to, said); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	writing.further(t, 5)
	a.sees("a", "b")
	if !a.log.has("WARN", "refused a connection") && !a.log.has("WARN", "handshake") {
		t.Errorf("a says nothing of it:\n%s", a.log)
	}
	writing.end(t, a)
	if len(writing.failed) > 0 {
		t.Errorf("writes were refused: %v", writing.failed)
	}
}

// issue 5: the database is killed and away; issue 4: permissions come by it, too
func TestWithTheDatabaseAwayTheViewHoldsAndPermissionsAreUndeterminedUntilItIsBack(t *testing.T) {
	t.Parallel()
	proxy, err := server.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	w := newTown(t)
	w.url = proxy.Through(w.url)
	all := w.start("a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	nodes := paths(4)
	a.owned(nodes)
	writing := b.write(nodes...)
	writing.further(t, 3)
	look := c.watch(nodes[0])
	from := (<-look.events).Version

	unseen, err := a.client().CreateToken(t.Context(), "admin", "of nobody's")
	if err != nil {
		t.Fatal(err)
	}

	proxy.Refuse(true)
	proxy.Cut()
	away := time.After(longer(3*time.Second, 60*time.Second)) // the fault itself
	wait(t, "a write to be refused", func() error {
		_, err := c.client().Patch(t.Context(), nodes[1], []byte(`{"description":"x"}`), client.If{})
		var e *client.Error
		switch {
		case err == nil:
			return errors.New("it was acknowledged")
		case !errors.As(err, &e) || e.Status != 503:
			return fmt.Errorf("it was answered %w", err)
		}
		return nil
	})
	for _, p := range all {
		if line := `hubmesh_cluster_members{state="up"} 3`; !strings.Contains(p.metrics(), line+"\n") { // the last view holds
			t.Errorf("%s does not say %s", p.name, line)
		}
		wait(t, p.name+" to determine nothing", func() error {
			_, err := p.client().Get(t.Context(), nodes[0])
			if !client.HasCode(err, "undetermined") && !client.HasCode(err, "unavailable") { // that its token can not be checked
				return fmt.Errorf("it answers %w", err)
			}
			return nil
		})
		// What goes on is told to the operator all the same, as it was known last, and to nobody else.
		text, err := p.client().ClusterStatus(t.Context())
		if err != nil || !strings.Contains(string(text), `"answered":3`) {
			t.Errorf("%s tells its operator of the cluster: %.300s %v", p.name, text, err)
		}
		if text, err := p.client().Why(t.Context(), nodes[0]); err != nil || !strings.Contains(string(text), `"observations"`) {
			t.Errorf("%s tells its operator of a node: %.300s %v", p.name, text, err)
		}
		stranger, err := client.New(client.Options{Server: p.url, Token: unseen.Token})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stranger.ClusterStatus(t.Context()); !client.HasCode(err, "unavailable") {
			t.Errorf("%s tells somebody whom it had not seen: %v", p.name, err)
		}
		wait(t, p.name+" to be unready", func() error {
			if text, err := p.unready(); err != nil || text == "" {
				return fmt.Errorf("it is ready: %w", err)
			}
			return nil
		})
	}
	<-away
	proxy.Refuse(false)
	back := time.Now()
	writing.further(t, 3)
	t.Logf("written again %v after the database was back", time.Since(back))
	for _, p := range all {
		p.ready()
		p.sees("a", "b", "c")
	}
	writing.end(t, c)
	look.until(t, from, writing.last[nodes[0]])
}

// issue 5: joins and leaves, churn
func TestWhileSilosComeAndGoNoWriteIsLost(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b")
	nodes := paths(8)
	all[0].owned(nodes)
	writing := all[1].write(nodes...)
	writing.further(t, 2)
	rounds := 3
	if long() {
		rounds = 30
	}
	began := time.Now()
	for i := range rounds {
		p := w.begin(fmt.Sprint("x", i%3))
		if err := p.up(); err != nil {
			t.Fatalf("%v:\n%s", err, p.log)
		}
		for _, path := range nodes[:2] {
			p.read(path)
		}
		if err := p.stop(); err != nil {
			t.Errorf("%v:\n%s", err, p.log)
		}
		if p.log.has("was put out of the cluster") {
			t.Errorf("%s left by itself, and says that it was put out:\n%s", p.name, p.log)
		}
	}
	t.Logf("%d joins and leaves in %v", rounds, time.Since(began))
	writing.further(t, 2)
	all[0].sees("a", "b")
	writing.end(t, all[0])
	if len(writing.failed) > 0 {
		t.Errorf("writes were refused: %v", writing.failed)
	}
}

// issue 5: a client that floods one address
func TestAFloodOfOneAddressKeepsOthersAnswering(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	nodes := paths(3)
	a.owned(nodes)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var flood sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range 64 {
		flood.Go(func() {
			for cl := b.client(); ctx.Err() == nil; {
				_, err := cl.Get(ctx, nodes[0])
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				outcomes[fmt.Sprintf("%.80v", err)]++
				if err != nil && !transient(err) {
					t.Errorf("the flooded address was answered %v", err)
				}
				mu.Unlock()
			}
		})
	}
	writing := c.write(nodes[1:]...)
	writing.further(t, 20)
	stop()
	flood.Wait()
	writing.end(t, b)
	if outcomes["<nil>"] == 0 || len(writing.failed) > 0 {
		t.Errorf("the flood had %v; writes elsewhere were refused: %v", outcomes, writing.failed)
	}
	a.sees("a", "b", "c")
}

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// process is one process as far as the database is concerned: a store, its feed, writers, and a consumer.
type process struct {
	t     *testing.T
	name  string
	store *postgres.Store
	relay *feed.Relay
	feed  *feed.Feed
	all   *feed.Consumer

	mu      sync.Mutex
	told    map[node.Path]int64 // what the invalidation channel said last
	older   int                 // versions that came after newer ones
	resets  int
	logical map[string]int // changes of the logical channel
	seen    map[string]bool
}

func start(t *testing.T, name, url string) *process {
	t.Helper()
	p := &process{t: t, name: name, store: open(t, postgres.Options{URL: url, Origin: name}), told: map[node.Path]int64{}, logical: map[string]int{}, seen: map[string]bool{}}
	p.relay = feed.NewRelay(p.store.ReadMany, quiet())
	p.relay.Invalidations("test", p.invalidated)
	p.relay.Changes(func(c store.Change) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.logical[fmt.Sprint(c.Path, " ", c.Version)]++
	})
	p.feed = feed.Open(feed.SourceOf(p.store), p.relay, quiet())
	p.store.Subscribe(func(c store.Change) {
		p.relay.Publish(c)
		p.feed.Committed()
	})
	p.all = p.feed.Consumer("all of "+name, p.store.Positions(), p.handle)
	t.Cleanup(func() {
		p.feed.Close()
		p.relay.Close()
	})
	select {
	case <-p.feed.Live():
	case <-time.After(30 * time.Second):
		t.Fatal("the feed does not go live")
	}
	p.mu.Lock()
	p.resets = 0 // but for the one of the start
	p.mu.Unlock()
	return p
}

func (p *process) invalidated(i feed.Invalidation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case i.Reset:
		p.resets++
		clear(p.told)
	case i.Version < p.told[i.Path]:
		p.older++
	default:
		p.told[i.Path] = i.Version
	}
}

// handle notes every row; after a reset it takes all that is stored, as a consumer has to.
func (p *process) handle(ctx context.Context, b feed.Batch) error {
	if b.Reset {
		rows, err := stored(ctx, p.store)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = rows
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range b.Rows {
		p.seen[fmt.Sprint(r.Path, " ", r.Version)] = true
	}
	return nil
}

// stored is every version there is, deletions included.
func stored(ctx context.Context, s *postgres.Store) (map[string]bool, error) {
	rows, err := s.Query(ctx, "select path, version from mesh_nodes union all select path, version from mesh_node_history")
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	var path string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&path, &version}, func() error {
		all[fmt.Sprint(path, " ", version)] = true
		return nil
	})
	return all, err
}

// write has some writers update, delete and create nodes of their own until stop ends.
func (p *process) write(stop context.Context, work *sync.WaitGroup, writers int, progress chan<- struct{}) {
	c := store.NewCommitter(p.store, store.CommitterOptions{Lanes: postgres.Lanes})
	work.Go(func() {
		defer c.Close()
		var each sync.WaitGroup
		for i := range writers {
			each.Go(func() {
				path := fmt.Sprintf("acme/%s-%d", p.name, i)
				for version, alive := int64(0), false; stop.Err() == nil; {
					w := update(path, version+1)
					switch {
					case !alive:
						w = create(path, version+1)
					case version%9 == 8:
						w = remove(path, version+1)
					}
					_, err := c.Submit(context.Background(), w)
					var away *store.UnavailableError
					switch {
					case err == nil:
						version, alive = version+1, w.Op != store.OpDelete
						select {
						case progress <- struct{}{}:
						default:
						}
					case errors.As(err, &away) && away.Transient:
					case errors.As(err, new(*store.OutcomeUnknownError)) || errors.As(err, new(*store.ConflictError)) || errors.As(err, new(*store.ExistsError)) || errors.As(err, new(*store.NotFoundError)):
						// After an unknown outcome, or a failover: go on from what is stored.
						n, err := p.store.Read(context.Background(), node.Path(path))
						var missing *store.NotFoundError
						switch {
						case err == nil:
							version, alive = n.Version, true
						case errors.As(err, &missing):
							version, alive = missing.LastVersion, false
						}
					default:
						p.t.Errorf("%s: %v", path, err)
						return
					}
				}
			})
		}
		each.Wait()
	})
}

// agree checks that every process was told everything, once there is nothing left to tell.
func agree(t *testing.T, processes ...*process) {
	t.Helper()
	var want map[string]bool
	eventually(t, "what is stored", func() (err error) { // over a connection that may not know yet that its server is another one
		want, err = stored(t.Context(), processes[0].store)
		return err
	})
	newest := map[node.Path]int64{}
	for key := range want {
		path, text, _ := strings.Cut(key, " ")
		var version int64
		fmt.Sscan(text, &version)
		newest[node.Path(path)] = max(newest[node.Path(path)], version)
	}
	logical := map[string]int{}
	for _, p := range processes {
		eventually(t, p.name+" to have seen everything", func() error {
			p.mu.Lock()
			defer p.mu.Unlock()
			missing := 0
			for key := range want {
				if !p.seen[key] {
					missing++
				}
			}
			if missing > 0 {
				return fmt.Errorf("the consumer has not seen %d of %d versions", missing, len(want))
			}
			for path, version := range newest {
				if p.told[path] != version && p.resets == 0 {
					return fmt.Errorf("%s was told as version %d, stored is %d", path, p.told[path], version)
				}
			}
			return nil
		})
		p.mu.Lock()
		for key := range p.seen {
			if !want[key] {
				t.Errorf("%s saw %s, which is not stored", p.name, key)
			}
		}
		if p.older > 0 {
			t.Errorf("%s was told %d older versions after newer ones", p.name, p.older)
		}
		for key, n := range p.logical {
			logical[key] += n
		}
		t.Logf("%s: %d versions, %d resets, %+v", p.name, len(p.seen), p.resets, p.feed.Stats().Reconnects)
		p.mu.Unlock()
	}
	for key, n := range logical {
		if n != 1 {
			t.Errorf("%s was told %d times on logical channels", key, n)
		}
	}
	if len(want) == 0 || len(slices.Collect(maps.Keys(logical))) == 0 {
		t.Error("nothing happened")
	}
}

func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	end := time.Now().Add(60 * time.Second)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// trouble runs two processes under load while something goes wrong again and again.
func trouble(t *testing.T, on *pgtest.Server, url func(name string) string, each int, wrong func(round int)) {
	t.Helper()
	a, b := start(t, "a", url("a")), start(t, "b", url("b"))
	space(t, a.store, "acme")
	stop, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	progress := make(chan struct{}, 100_000)
	a.write(stop, &work, 4, progress)
	b.write(stop, &work, 4, progress)
	for round := range 5 {
		for range each {
			<-progress
		}
		wrong(round)
	}
	for range each {
		<-progress
	}
	cancel()
	work.Wait()
	agree(t, a, b)
}

func ownServer(t *testing.T, settings ...string) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fresh makes a database on a server of the test's own.
func fresh(t *testing.T, s *pgtest.Server) string {
	t.Helper()
	url, err := s.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// issue 4, storage.md §6, CF-24
func TestBackendsThatAreTerminatedUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	url := database(t)
	trouble(t, server, func(string) string { return url }, 150, func(int) {
		for range 4 {
			conn := stranger(t, url)
			exec(t, conn, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'hubmesh %' and pid <> pg_backend_pid()")
			_ = conn.Close(context.Background())
		}
	})
}

// issue 4, storage.md §2: positions after a crash
func TestAServerThatIsKilledUnderLoadLosesNothingThatWasAcknowledgedAndNoChangeRow(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	url := fresh(t, own)
	trouble(t, own, func(string) string { return url }, 100, func(int) {
		own.Kill()
		if err := own.Run(); err != nil {
			t.Fatal(err)
		}
	})
}

// issue 4, storage.md §2: a server that crashes hands out again the ids that nothing durable carried
func TestTheFirstRowAfterTheCrashOfAnIdleServerIsSeen(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	url := fresh(t, own)
	a, b := start(t, "a", url), start(t, "b", url)
	space(t, a.store, "acme")
	for round := int64(1); round <= 3; round++ {
		other := stranger(t, url)
		exec(t, other, "set synchronous_commit = off")
		for range 5 { // ids that are not flushed, and that the readers' snapshots have passed
			exec(t, other, "select pg_current_xact_id()")
			exec(t, other, "notify "+postgres.Channel)
		}
		for _, p := range []*process{a, b} {
			if err := p.feed.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		own.Kill()
		if err := own.Run(); err != nil {
			t.Fatal(err)
		}
		w := update("acme/x", round)
		if round == 1 {
			w = create("acme/x", 1)
		}
		eventually(t, "a write", func() error {
			results, err := a.store.Commit(t.Context(), []store.Write{w})
			if err == nil {
				err = results[0].Err
			}
			return err
		})
		eventually(t, "b to be told", func() error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.told["acme/x"] != round {
				return fmt.Errorf("it was told version %d of %d", b.told["acme/x"], round)
			}
			return nil
		})
	}
	agree(t, a, b)
}

// issue 4, storage.md §6 VERIFY: a promoted standby that has lost the last transactions
func TestAFailoverThatLosesTransactionsIsAResetAndNotSilence(t *testing.T) {
	t.Parallel()
	primary := ownServer(t)
	url := fresh(t, primary)
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	p := proxied(t, primary)
	a, b := start(t, "a", p.Through(url)), start(t, "b", p.Through(url))
	space(t, a.store, "acme")
	must(t, a.store, create("acme/kept", 1), create("acme/x", 1))
	must(t, a.store, update("acme/x", 2))
	eventually(t, "the standby to catch up", func() error {
		ok, err := standby.CaughtUp(t.Context(), primary)
		if err == nil && !ok {
			err = errors.New("it lags")
		}
		return err
	})
	standby.Stop()
	must(t, a.store, update("acme/x", 3), create("acme/lost", 1)) // acknowledged by the primary, and lost with it
	for _, proc := range []*process{a, b} {
		if err := proc.feed.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	resets := func(p *process) int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.resets
	}
	before := []int{resets(a), resets(b)}
	primary.Kill()
	if err := standby.Run(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Lead(standby)
	for i, proc := range []*process{a, b} {
		eventually(t, proc.name+" to be told that everything may have changed", func() error {
			if resets(proc) == before[i] {
				return errors.New("no reset")
			}
			return nil
		})
	}
	w := update("acme/x", 3)
	w.Node.Name = "written after the failover"
	must(t, a.store, w)
	eventually(t, "b to be told", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.told["acme/x"] != 3 {
			return fmt.Errorf("it was told version %d", b.told["acme/x"])
		}
		return nil
	})
	if n, err := b.store.Read(t.Context(), "acme/x"); err != nil || n.Name != "written after the failover" {
		t.Error(n, err)
	}
	if _, err := b.store.Read(t.Context(), "acme/lost"); !errors.As(err, new(*store.NotFoundError)) {
		t.Errorf("what was lost is read: %v", err)
	}
	for _, proc := range []*process{a, b} {
		eventually(t, "the consumer of "+proc.name, func() error {
			want, err := stored(t.Context(), proc.store)
			if err != nil {
				return err
			}
			proc.mu.Lock()
			defer proc.mu.Unlock()
			if !maps.Equal(want, proc.seen) {
				return fmt.Errorf("it has %v, stored is %v", proc.seen, want)
			}
			return nil
		})
	}
}

// storage.md §6, §9: by the ping, within 7 s
func TestAListenerThatIsCutOffWithoutAWordIsNoticedByItsPing(t *testing.T) {
	t.Parallel()
	url := database(t)
	p := proxied(t, server)
	a, b := start(t, "a", url), start(t, "b", p.Through(url))
	space(t, a.store, "acme")
	listens := b.feed.Stats().Listens
	p.Keep()
	p.Swallow(true)
	cut := time.Now()
	eventually(t, "the listener to give its connection up", func() error {
		if b.feed.Stats().Gaps == 0 {
			return errors.New("it has not noticed")
		}
		return nil
	})
	if took := time.Since(cut); took > 8*time.Second { // 6 s, and what a busy machine adds
		t.Errorf("noticed after %v", took)
	}
	must(t, a.store, create("acme/x", 1))
	p.Swallow(false)
	p.Cut()
	eventually(t, "b to listen again, and to be told", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.told["acme/x"] != 1 || b.feed.Stats().Listens == listens {
			return fmt.Errorf("told %d, %d listens", b.told["acme/x"], b.feed.Stats().Listens)
		}
		return nil
	})
}

// issue 4: the queue's blocker is named
func TestAListenerWithAnOpenTransactionIsNamedAsTheQueuesBlocker(t *testing.T) { // alone: the queue is the server's
	url := database(t)
	s := open(t, postgres.Options{URL: url})
	other := stranger(t, url)
	exec(t, other, "set application_name = 'sleeper'")
	exec(t, other, "listen "+postgres.Channel)
	exec(t, other, "begin")
	loud := stranger(t, url)
	exec(t, loud, "do $$ begin for i in 1..2000 loop perform pg_notify('"+postgres.Channel+"', repeat('x', 7000) || i); end loop; end $$")
	eventually(t, "the queue to fill", func() error {
		used, oldest, err := s.Queue(t.Context())
		if err != nil {
			return err
		}
		if used == 0 || len(oldest) == 0 || oldest[0].Application != "sleeper" || !strings.HasPrefix(oldest[0].State, "idle in transaction") {
			return fmt.Errorf("%v of it is used; %+v", used, oldest)
		}
		return nil
	})
}

package hubmesh_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh"
)

var clusterSecret = []byte("a secret that all silos of the test share")

// siloOptions are those of a silo on a database.
func siloOptions(url, name string) hubmesh.Options {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("HUBMESH_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})).With("process", name)
	}
	return hubmesh.Options{Postgres: url, Logger: log, Cluster: &hubmesh.Cluster{Listen: "127.0.0.1:0", Name: name, Secret: clusterSecret}}
}

// startSilo starts a silo in this process.
func startSilo(t *testing.T, url, name string) (*hubmesh.Mesh, context.Context) {
	t.Helper()
	m, err := hubmesh.New(siloOptions(url, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m, hubmesh.As(t.Context(), "admin")
}

// issue 5, decision 3
func TestANodeIsServedByOneSiloAndReachedFromEveryOne(t *testing.T) {
	_, url := database(t)
	a, ctx := startSilo(t, url, "a")
	b, _ := startSilo(t, url, "b")
	c, _ := startSilo(t, url, "c")
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a space", func() error { _, err := a.Create(ctx, "acme", "Space", map[string]any{}); return err })
	eventually(t, "a node", func() error { _, err := a.Create(ctx, "acme/x", "", map[string]any{"v": 0}); return err })
	silos := []*hubmesh.Mesh{a, b, c}
	for i, m := range silos {
		eventually(t, "a read", func() error { _, err := m.Get(ctx, "acme/x"); return err })
		if _, err := m.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{fmt.Sprint("from", i): true}}, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	// What was acknowledged by the owner is read through every silo at once: there is one owner.
	for _, m := range silos {
		n, err := m.Get(ctx, "acme/x")
		if err != nil || n.Version != 4 {
			t.Fatalf("version %d: %v", n.Version, err)
		}
	}
	if got := hubmesh.NodeHubs(a, "acme/x") + hubmesh.NodeHubs(b, "acme/x") + hubmesh.NodeHubs(c, "acme/x"); got != 1 {
		t.Errorf("%d silos run the hub of the node", got)
	}
	for _, m := range silos {
		eventually(t, "readiness", func() error {
			if w := m.Waiting(t.Context()); len(w) > 0 {
				return fmt.Errorf("waits for %v", w)
			}
			return nil
		})
	}
}

type (
	addRequest struct{ By int }
	addReply   struct {
		Sum int
		By  string // the name of the process that added
	}
)

var add = hubmesh.Define[addRequest, addReply]("test/add")

// issue 5: every typed message of registered types travels
func TestAMessageOfTheProgramsOwnReachesTheNodeOnAnotherSilo(t *testing.T) {
	_, url := database(t)
	start := func(name string) *hubmesh.Mesh {
		counter := hubmesh.Type("Counter")
		hubmesh.Handle(counter, add, func(ctx context.Context, n *hubmesh.This, r *addRequest) (*addReply, error) {
			var c struct{ Sum int }
			if err := n.Decode(&c); err != nil {
				return nil, err
			}
			_, err := n.Patch(ctx, map[string]any{"content": map[string]any{"sum": c.Sum + r.By}})
			return &addReply{c.Sum + r.By, name}, err
		})
		o := siloOptions(url, name)
		o.Types = []*hubmesh.NodeType{counter}
		m, err := hubmesh.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	a, b := start("a"), start("b")
	ctx := hubmesh.As(t.Context(), "admin")
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a space", func() error { _, err := a.Create(ctx, "acme", "Space", nil); return err })
	if _, err := a.Create(ctx, "acme/sum", "Counter", map[string]any{"sum": 0}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grant to count on b", func() error { _, err := b.Get(ctx, "acme"); return err })
	for i, m := range []*hubmesh.Mesh{a, b, a, b} {
		got, err := add.Ask(ctx, m, "acme/sum", &addRequest{By: 1})
		if err != nil || got.Sum != i+1 || got.By != "a" {
			t.Fatalf("%+v: %v", got, err)
		}
	}
}

// issue 5: a start that can not succeed says one clear thing to do
func TestASiloThatCanNotStartSaysWhatToDo(t *testing.T) {
	_, url := database(t)
	startSilo(t, url, "a")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct {
		change func(o *hubmesh.Options)
		want   string
	}{
		"no database":            {func(o *hubmesh.Options) { o.Postgres = "" }, "--postgres"},
		"no secret":              {func(o *hubmesh.Options) { o.Cluster.Secret = nil }, "--cluster-secret-file"},
		"a short secret":         {func(o *hubmesh.Options) { o.Cluster.Secret = []byte("short") }, "5 bytes"},
		"an address in use":      {func(o *hubmesh.Options) { o.Cluster.Listen = taken.Addr().String() }, "is in use"},
		"no host to dial":        {func(o *hubmesh.Options) { o.Cluster.Listen = ":0" }, "--advertise"},
		"somebody else's":        {func(o *hubmesh.Options) { o.Cluster.Advertise = taken.Addr().String() }, "--advertise"},
		"the secret of others":   {func(o *hubmesh.Options) { o.Cluster.Secret = []byte("a secret of nobody else's") }, "another secret"},
		"the name of another's":  {func(o *hubmesh.Options) { o.Cluster.Name = "a" }, "another --name"},
		"a type listed twice":    {func(o *hubmesh.Options) { o.Cluster.NodeTypes = []string{"A", "B", "A"} }, "'A' is no node type, or is listed twice"},
		"a type without a name":  {func(o *hubmesh.Options) { o.Cluster.NodeTypes = []string{"A", ""} }, "--node-types"},
		"too many types":         {func(o *hubmesh.Options) { o.Cluster.NodeTypes = make([]string, 257) }, "at most 256"},
		"an address of no shape": {func(o *hubmesh.Options) { o.Cluster.Listen = "nowhere" }, "want HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := siloOptions(url, "b "+name)
			c.change(&o)
			m, err := hubmesh.New(o)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it started"), m.Close(context.Background())))
			}
			var refused *hubmesh.ClusterError
			if !errors.As(err, &refused) || !strings.Contains(refused.Reason, c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

func full(path string) node.Node {
	order := -7
	p := node.Path(path)
	return node.Node{
		Path: p, MainNode: "acme/elsewhere", NodeType: "Northwind/Supplier", Name: "Gai pâturage 😀", Description: "100% of a_b's\n\"line\" <b>\u2028",
		Category: "Suppliers", Icon: "/static/x.svg", Order: &order, PreRenderedHTML: "<p>é</p>",
		Content: node.RawContent(`{"$type":"X","big":12345678901234567890.10,"list":[1,null,{"a":[]}],"text":"é\n\"\\ \u0001"}`),
		Version: 41, State: node.StateTransient, CreatedAt: stamp(1), CreatedBy: "emma", ModifiedAt: stamp(41), ModifiedBy: "paul",
		DesiredID: "gai", ExcludeFromContext: []string{"search", "a,b", ""}, SyncBehavior: node.SyncExcludeThisAndKids,
	}
}

// data §1.1, §1.3, §2.1 as amended by architecture.md decisions 3, 8 and 9
func runWrites(t *testing.T, open Factory) {
	t.Run("a created node reads back as it was written", func(t *testing.T) {
		b := setup(t, open, Options{})
		for _, n := range []node.Node{
			full("acme/x"),
			{Path: "acme/bare", MainNode: "acme/bare", Version: 1},
			{Path: "acme/large", MainNode: "acme/large", Version: 1, Content: node.RawContent(`{"text":"` + strings.Repeat("é", 500_000) + `"}`)},
			{Path: "acme/list", MainNode: "acme/list", Version: 1, Content: node.RawContent(`[]`)},
			{Path: "_Access/admin", MainNode: "", Version: 1},
			{Path: node.Path("acme/" + strings.Repeat("ü", 509)), MainNode: "acme", Version: 1 << 53},
			{Path: "acme/s.r.l./it's & co.", MainNode: "acme", Version: 1},
		} {
			got, err := b.one(store.Write{Op: store.OpCreate, Node: n})
			if err != nil {
				t.Fatalf("%.60s: %v", n.Path, err)
			}
			same(t, n, got)
			same(t, n, b.read(string(n.Path)))
		}
	})
	t.Run("a missing main node and a local time are put right", func(t *testing.T) {
		b := setup(t, open, Options{})
		zone := time.FixedZone("east", 3600)
		n := node.Node{Path: "acme/x/_Thread/1", Version: 1, CreatedAt: stamp(1).Add(7).In(zone), ModifiedAt: stamp(2).Add(999).In(zone)}
		want := node.Node{Path: "acme/x/_Thread/1", MainNode: "acme/x", Version: 1, CreatedAt: stamp(1), ModifiedAt: stamp(2)}
		got, err := b.one(store.Write{Op: store.OpCreate, Node: n})
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
		same(t, want, b.read("acme/x/_Thread/1"))
	})
	t.Run("a create of a path that has a node is refused and changes nothing", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		_, err := b.one(create("acme/x", 9))
		var exists *store.ExistsError
		if !errors.As(err, &exists) || exists.Version != 1 || exists.Path != "acme/x" || exists.Other != "" {
			t.Errorf("got %v", err)
		}
		same(t, simple("acme/x", 1), b.read("acme/x"))
	})
	t.Run("a create that differs in letter case only is refused, in any script", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/Launch", "acme/pâté", "acme/Σ")
		for path, other := range map[string]node.Path{"acme/lauNch": "acme/Launch", "acme/PÂTÉ": "acme/pâté", "acme/ς": "acme/Σ"} {
			_, err := b.one(create(path, 1))
			var exists *store.ExistsError
			if !errors.As(err, &exists) || exists.Other != other || exists.Path != node.Path(path) {
				t.Errorf("%s: got %v", path, err)
			}
			b.absent(path, 0)
		}
		results, err := b.Commit(t.Context(), []store.Write{create("acme/new", 1), create("acme/NEW", 1)})
		if err != nil || results[0].Err != nil || results[1].Err == nil {
			t.Errorf("in one batch: %v, %v", results, err)
		}
		b.commit(remove("acme/Launch", 1, 2))
		b.create("acme/lauNch", "acme/pate")
	})
	t.Run("an update replaces every field but the creation stamps", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		n := full("acme/x")
		got, err := b.one(store.Write{Op: store.OpUpdate, Node: n, Expected: 1})
		if err != nil {
			t.Fatal(err)
		}
		n.CreatedAt, n.CreatedBy = stamp(0), "creator"
		same(t, n, got)
		same(t, n, b.read("acme/x"))
		bare := node.Node{Path: "acme/x", MainNode: "acme/x", Version: 42}
		if _, err := b.one(store.Write{Op: store.OpUpdate, Node: bare, Expected: 41}); err != nil {
			t.Fatal(err)
		}
		bare.CreatedAt, bare.CreatedBy = stamp(0), "creator"
		same(t, bare, b.read("acme/x"))
	})
	t.Run("a write that was made for another row of the same version is a conflict", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		at := func(w store.Write, expected time.Time) store.Write {
			w.ExpectedAt, w.Node.ModifiedAt = expected, stamp(w.Node.Version)
			return w
		}
		b.commit(at(update("acme/x", 1, 2), time.Time{}))
		for _, w := range []store.Write{update("acme/x", 2, 3), remove("acme/x", 2, 3)} {
			_, err := b.one(at(w, stamp(7)))
			conflict(t, err, 2)
		}
		b.commit(at(update("acme/x", 2, 3), stamp(2).Add(300*time.Nanosecond))) // rows keep microseconds
		b.commit(at(update("acme/x", 3, 4), time.Time{}))                       // the control: any row of the version
		b.commit(at(remove("acme/x", 4, 5), stamp(4)))
	})
	t.Run("an update of another version than the stored one is a conflict", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		b.commit(update("acme/x", 1, 2))
		for _, w := range []store.Write{update("acme/x", 1, 3), update("acme/x", 3, 4), update("acme/x", 0, 5), update("acme/x", -1, 5)} {
			_, err := b.one(w)
			conflict(t, err, 2)
		}
		_, err := b.one(update("acme/nowhere", 1, 2))
		conflict(t, err, 0)
		_, err = b.one(update("acme/nowhere", 0, 1))
		conflict(t, err, 0)
		b.absent("acme/nowhere", 0)
		same(t, simple("acme/x", 2), b.read("acme/x"))
	})
	// data §1.3.6 as amended, invariant 60
	t.Run("a write that does not raise the version is a conflict", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.commit(create("acme/x", 5))
		for _, version := range []int64{5, 4, 0, -1} {
			_, err := b.one(update("acme/x", 5, version))
			conflict(t, err, 5)
		}
		for _, version := range []int64{0, -1} {
			_, err := b.one(create("acme/y", version))
			conflict(t, err, 0)
		}
		same(t, simple("acme/x", 5), b.read("acme/x"))
	})
	t.Run("a row that fails fails alone", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/a", "acme/b")
		bad := create("acme/bad", 1)
		bad.Node.Name = "nul\x00"
		results, err := b.Commit(t.Context(), []store.Write{
			update("acme/a", 7, 8), create("acme/c", 1), create("acme/b", 1), bad, create("missing/x", 1), update("acme/b", 1, 2), remove("acme/gone", 1, 2),
		})
		if err != nil {
			t.Fatal(err)
		}
		var row *store.RowError
		var partition *store.PartitionError
		var exists *store.ExistsError
		var missing *store.NotFoundError
		conflict(t, results[0].Err, 1)
		if results[1].Err != nil || !errors.As(results[2].Err, &exists) || !errors.As(results[3].Err, &row) || !errors.As(results[4].Err, &partition) ||
			results[5].Err == nil || !errors.As(results[6].Err, &missing) {
			t.Errorf("got %v", results)
		}
		same(t, simple("acme/c", 1), b.read("acme/c"))
		same(t, simple("acme/a", 1), b.read("acme/a"))
		same(t, simple("acme/b", 1), b.read("acme/b"))
	})
	t.Run("a path stands in a batch once", func(t *testing.T) {
		b := setup(t, open, Options{})
		results, err := b.Commit(t.Context(), []store.Write{create("acme/x", 1), update("acme/x", 1, 2), create("acme/y", 1)})
		if err != nil || results[0].Err != nil || !errors.Is(results[1].Err, store.ErrBatchDuplicate) || results[2].Err != nil {
			t.Fatalf("%v, %v", results, err)
		}
		same(t, simple("acme/x", 1), b.read("acme/x"))
	})
	t.Run("text that no store can keep is refused for its row", func(t *testing.T) {
		b := setup(t, open, Options{})
		for name, change := range map[string]func(*node.Node){
			"no path":       func(n *node.Node) { n.Path = "" },
			"long path":     func(n *node.Node) { n.Path = node.Path("acme/" + strings.Repeat("x", node.MaxPathBytes)) },
			"invalid UTF-8": func(n *node.Node) { n.Description = "\xff" },
			"NUL":           func(n *node.Node) { n.ModifiedBy = "\x00" },
			"version":       func(n *node.Node) { n.Version = store.MaxVersion + 1 },
			"NUL in a list": func(n *node.Node) { n.ExcludeFromContext = []string{"\x00"} },
		} {
			w := create("acme/x", 1)
			change(&w.Node)
			_, err := b.one(w)
			var row *store.RowError
			if !errors.As(err, &row) || strings.Contains(err.Error(), "SQLSTATE") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := b.one(store.Write{Node: simple("acme/x", 1)}); err == nil {
			t.Error("an operation that is none is accepted")
		}
		b.absent("acme/x", 0)
	})
	t.Run("an empty batch is nothing", func(t *testing.T) {
		b := setup(t, open, Options{})
		if results, err := b.Commit(t.Context(), nil); err != nil || len(results) != 0 {
			t.Errorf("%v, %v", results, err)
		}
	})
	t.Run("a batch of a thousand rows commits", func(t *testing.T) {
		b := setup(t, open, Options{})
		var batch []store.Write
		for i := range 1000 {
			batch = append(batch, create("acme/n"+strings.Repeat("x", i%10)+string(rune('a'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10)), 1))
		}
		b.commit(batch...)
		if n := len(descendants(t, b, "acme")); n != 1000 {
			t.Errorf("%d nodes", n)
		}
	})
}

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

func descendants(t testing.TB, s store.Store, path node.Path) []node.Path {
	t.Helper()
	var paths []node.Path
	for p, err := range s.Descendants(t.Context(), path) {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

// children lists entries as text: a "*" follows where there is no node, a "+" where there are children.
func (b bench) children(path string, page store.Page) []string {
	b.t.Helper()
	entries, err := b.Children(b.t.Context(), node.Path(path), page)
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		line := string(e.Path)
		if e.Node == nil {
			line += " *"
		} else if e.Node.Path != e.Path || e.Node.Version == 0 || e.Node.Name == "" || e.Node.NodeType == "" {
			b.t.Errorf("%s has the node %+v", e.Path, e.Node)
		}
		if e.HasChildren {
			line += " +"
		}
		lines = append(lines, line)
	}
	return lines
}

func runTree(t *testing.T, open Factory) {
	list := func(t *testing.T, b bench, path string, page store.Page, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, b.children(path, page)); diff != "" {
			t.Errorf("children of '%s' %+v (-want +got):\n%s", path, page, diff)
		}
	}
	// data §1.2: missing intermediate nodes are legal; enumeration walks through node-less levels
	t.Run("children are listed in order, through levels without a node", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme", "acme/b", "acme/a", "acme/a b", "acme/a-b", "acme/a/1", "acme/gap/far/leaf", "acme/gap-2", "acme/ü", "acme/Z", "other/only/deep", "acme/.hidden")
		list(t, b, "acme", store.Page{}, "acme/.hidden", "acme/Z", "acme/a +", "acme/a b", "acme/a-b", "acme/b", "acme/gap * +", "acme/gap-2", "acme/ü")
		list(t, b, "acme/gap", store.Page{}, "acme/gap/far * +")
		for _, without := range []bool{false, true} {
			entries, err := b.Children(t.Context(), "acme/a", store.Page{NoContent: without})
			if err != nil || len(entries) != 1 {
				t.Fatalf("%v, %v", entries, err)
			}
			want := simple("acme/a/1", 1)
			if without {
				want.Content = node.Content{}
			}
			same(t, want, *entries[0].Node)
		}
		list(t, b, "acme/gap/far", store.Page{}, "acme/gap/far/leaf")
		list(t, b, "acme/b", store.Page{})
		list(t, b, "nowhere", store.Page{})
		list(t, b, "", store.Page{}, "acme +", "other * +")
	})
	t.Run("satellites are listed when they are asked for", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x", "acme/x/_Thread/1", "acme/x/_Thread/1/_ThreadMessage/2", "acme/_Access/Emma", "acme/_access/Paul", "acme/_Inbox/1", "acme/only/_Comment/1", "_Access/root")
		odd := simple("acme/odd", 1)
		odd.MainNode = "acme/x"
		b.commit(store.Write{Op: store.OpCreate, Node: odd})
		list(t, b, "acme", store.Page{}, "acme/_Inbox * +", "acme/x")
		list(t, b, "acme", store.Page{Satellites: true}, "acme/_Access *", "acme/_Inbox * +", "acme/_access *", "acme/odd", "acme/only *", "acme/x")
		list(t, b, "acme/x", store.Page{})
		list(t, b, "acme/x", store.Page{Satellites: true}, "acme/x/_Thread *")
		list(t, b, "acme/x/_Thread", store.Page{}, "acme/x/_Thread/1 +")
		list(t, b, "acme/_Access", store.Page{}, "acme/_Access/Emma")
		list(t, b, "", store.Page{}, "acme * +")
		list(t, b, "", store.Page{Satellites: true}, "_Access *", "acme * +")
	})
	t.Run("a listing of children comes in pages", func(t *testing.T) {
		b := setup(t, open, Options{})
		var batch []store.Write
		var want []string
		for i := range 57 {
			path := fmt.Sprintf("acme/n%02d", i)
			want = append(want, path)
			batch = append(batch, create(path, 1))
			if i%3 == 0 {
				batch[len(batch)-1] = create(path+"/below/it", 1)
				want[len(want)-1] += " * +"
			}
			batch = append(batch, create(path+"-x/_Thread/1", 1)) // no page is filled with what is hidden
		}
		b.commit(batch...)
		var got []string
		for page := (store.Page{Limit: 10}); ; {
			part, err := b.Children(t.Context(), "acme", page)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.children("acme", page)...)
			if len(part) < 10 {
				break
			}
			page.After = part[9].Path.ID()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		list(t, b, "acme", store.Page{After: "n55a"}, "acme/n56")
		list(t, b, "acme", store.Page{After: "zzz"})
	})
	// data §2.1, invariant 46
	t.Run("descendants are all of them, satellites and gaps included, in path order", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme", "acme/x", "acme/x/_Thread/1", "acme/x/_Thread/1/_ThreadMessage/2", "acme/x/a/b/c", "acme/x-1", "acme/x 1", "acme/x1", "acme/_Access/Emma", "other/x")
		for path, want := range map[node.Path][]node.Path{
			"acme/x":   {"acme/x/_Thread/1", "acme/x/_Thread/1/_ThreadMessage/2", "acme/x/a/b/c"},
			"acme":     {"acme/_Access/Emma", "acme/x", "acme/x/_Thread/1", "acme/x/_Thread/1/_ThreadMessage/2", "acme/x/a/b/c", "acme/x 1", "acme/x-1", "acme/x1"},
			"acme/x/a": {"acme/x/a/b/c"}, "acme/x1": nil, "acm": nil, "other": {"other/x"},
		} {
			if got := descendants(t, b, path); !slices.Equal(got, want) {
				t.Errorf("%s: got %q", path, got)
			}
		}
		if got := descendants(t, b, ""); len(got) != 10 {
			t.Errorf("of the root: %q", got)
		}
	})
	t.Run("thousands of descendants are enumerated, and a reader may stop or fail", func(t *testing.T) {
		b := setup(t, open, Options{})
		for i := range 5 {
			var batch []store.Write
			for j := range 500 {
				batch = append(batch, create(fmt.Sprintf("acme/%d/%03d", i, j), 1))
			}
			b.commit(batch...)
		}
		got := descendants(t, b, "acme")
		if len(got) != 2500 || !slices.IsSortedFunc(got, node.Path.Compare) {
			t.Errorf("%d paths", len(got))
		}
		seen := 0
		for range b.Descendants(t.Context(), "acme") {
			if seen++; seen == 3 {
				break
			}
		}
		for p, err := range b.Descendants(canceled(t), "acme") {
			if err == nil {
				t.Fatalf("%s is yielded though the context has ended", p)
			}
			seen++
		}
		if seen != 4 {
			t.Errorf("an error is yielded %d times", seen-3)
		}
		b.commit(remove("acme/2/100", 1, 2)) // the store is free to write while nobody reads
	})
	// data §2.4: escape LIKE metacharacters; invariant 46: wildcards never leak siblings
	t.Run("wildcards of the store's own language in a path mean themselves", func(t *testing.T) {
		b := setup(t, open, Options{})
		for _, name := range []string{"a_b", "axb"} {
			if err := b.EnsurePartition(t.Context(), name, ""); err != nil {
				t.Fatal(err)
			}
		}
		b.create("a_b/x", "axb/x", "acme/100%/x", "acme/100x/x", "acme/a_b/x", "acme/axb/x", "acme/[a]/x", "acme/a/x", "acme/'q'/x", "acme/a*/x", "acme/a?/x")
		for _, path := range []node.Path{"a_b", "acme/100%", "acme/a_b", "acme/[a]", "acme/'q'", "acme/a*", "acme/a?"} {
			if got := descendants(t, b, path); !slices.Equal(got, []node.Path{path + "/x"}) {
				t.Errorf("descendants of %s: %q", path, got)
			}
			list(t, b, string(path), store.Page{}, string(path)+"/x")
		}
		b.commit(remove("a_b/x", 1, 2))
		if err := b.RemovePartition(t.Context(), "a_b"); err != nil {
			t.Errorf("remove a_b: %v", err)
		}
	})
	// data §2.1: ResolvePath; invariant 47
	t.Run("the deepest node at or above a path is found", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme", "acme/x", "acme/x/_Thread/1")
		for path, want := range map[node.Path]node.Path{
			"acme": "acme", "acme/y/z": "acme", "acme/x/y/z": "acme/x", "acme/x/_Thread/1/deep/er": "acme/x/_Thread/1",
			"acme/x/_Thread": "acme/x", "acme/xy": "acme", "acme/X": "acme",
		} {
			n, err := b.Prefix(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if want := simple(string(want), 1); n.Path != want.Path {
				t.Errorf("%s: %s", path, n.Path)
			} else {
				same(t, want, n)
			}
		}
		var missing *store.NotFoundError
		if _, err := b.Prefix(t.Context(), "other/x"); !errors.As(err, &missing) || missing.Path != "other/x" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("many nodes are read in the order of their paths' list", func(t *testing.T) {
		b := setup(t, open, Options{})
		var paths, want []node.Path
		var batch []store.Write
		for i := range 1200 {
			path := fmt.Sprintf("acme/n%d", i*7919%1201)
			paths = append(paths, node.Path(path))
			if i%5 != 0 {
				want = append(want, node.Path(path))
				batch = append(batch, create(path, 1))
			}
		}
		b.commit(batch...)
		nodes, err := b.ReadMany(t.Context(), paths)
		if err != nil || len(nodes) != len(want) {
			t.Fatalf("%d nodes, %v", len(nodes), err)
		}
		for i, n := range nodes {
			if n.Path != want[i] {
				t.Fatalf("%s stands where %s belongs", n.Path, want[i])
			}
		}
		same(t, simple(string(want[3]), 1), nodes[3])
		if nodes, err := b.ReadMany(t.Context(), nil); err != nil || len(nodes) != 0 {
			t.Errorf("%v, %v", nodes, err)
		}
	})
}

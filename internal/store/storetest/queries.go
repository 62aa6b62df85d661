package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

func mustParse(t testing.TB, text string) query.Query {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

func (b bench) find(text string) []node.Node {
	b.t.Helper()
	nodes, err := b.Select(b.t.Context(), mustParse(b.t, text))
	if err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
	return nodes
}

// population is a tree in which every kind of bound of a query has something to leave out.
func population() []node.Node {
	types := []string{"Task", "Markdown", "task", "", "Thread"}
	var nodes []node.Node
	add := func(path string) {
		i := len(nodes)
		n := simple(path, int64(i%7+1))
		n.NodeType = types[i%len(types)]
		n.Content = node.RawContent(fmt.Sprintf(`{"rank":%d.5,"tags":["t%d"],"text":"Word%d in the text"}`, i%10, i%3, i%4))
		if i%11 == 0 {
			n.State = node.StateTransient
		}
		if i%13 == 0 {
			order := i
			n.Order = &order
		}
		nodes = append(nodes, n)
	}
	for _, top := range []string{"acme", "other", "acme-2", "ac_e"} {
		add(top)
		for _, mid := range []string{"/a", "/a-b", "/a b", "/A_b", "/gap/x", "/100%", "/é"} {
			add(top + mid)
			for _, leaf := range []string{"/1", "/2", "/_Thread/m", "/_Access/Emma", "/deep/er/leaf"} {
				add(top + mid + leaf)
			}
		}
	}
	odd := simple("acme/odd", 1)
	odd.MainNode = "other/a"
	return append(nodes, odd)
}

func runQueries(t *testing.T, open Factory) {
	// data §5.1: every store answers alike
	t.Run("a query answers what the matcher says over all nodes", func(t *testing.T) {
		b := setup(t, open, Options{})
		all := population()
		var batch []store.Write
		for _, name := range []string{"acme-2", "ac_e"} {
			if err := b.EnsurePartition(t.Context(), name, ""); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range all {
			batch = append(batch, store.Write{Op: store.OpCreate, Node: n})
		}
		b.commit(batch...)
		slices.SortFunc(all, func(a, b node.Node) int { return a.Path.Compare(b.Path) })

		asked, empty := 0, 0
		for _, where := range []string{"", "nodeType:Task", "nodeType:Thread", "nodeType:Task|Markdown", "nodeType:T*", "-nodeType:Task", "-is:main",
			"rank:>4", "word1", "state:Transient", "mainNode:acme/a|other/a", "order:*", "(nodeType:Task OR word2)", "context:search", "path:acme/a*", "namespace:acme/a*|other/gap*"} {
			for _, place := range []string{"", "path:acme", "path:acme/a|other/gap", "namespace:acme", "namespace:acme/a|other", "path:acme/a/_Thread", "path:acme/a/deep/er/leaf",
				"path:ac_e", "path:nowhere"} {
				if strings.Contains(place, ":") && strings.HasPrefix(where, "path:") || strings.Contains(place, ":") && strings.HasPrefix(where, "namespace:") {
					continue
				}
				for i, scope := range []string{"", "scope:exact", "scope:children", "scope:descendants", "scope:subtree", "scope:ancestors", "scope:hierarchy", "scope:ancestorsAndSelf", "scope:nextLevel"} {
					ends := []string{"", "limit:3", "sort:rank-desc,name limit:4", "sort:name select:name"}
					text := strings.Join(strings.Fields(strings.Join([]string{place, scope, where, ends[(i+asked)%len(ends)]}, " ")), " ")
					if text == "" {
						continue
					}
					asked++
					if compare(t, b, all, text) == 0 {
						empty++
					}
				}
			}
		}
		if empty*10 > asked*6 {
			t.Errorf("%d of %d queries find nothing: the comparison says too little", empty, asked)
		}
	})
	t.Run("a query sees creates, updates and deletes that have been committed", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x", "acme/y")
		w := update("acme/x", 1, 2)
		w.Node.NodeType = "Story"
		b.commit(w, remove("acme/y", 1, 2))
		if got := names(b.find("nodeType:Story")); got != "acme/x" {
			t.Errorf("got %s", got)
		}
		if got := names(b.find("nodeType:Task")); got != "" {
			t.Errorf("got %s", got)
		}
		same(t, w.Node, b.find("path:acme/x")[0])
	})
	t.Run("a query that would look at too many nodes is refused", func(t *testing.T) {
		b := setup(t, open, Options{ScanRows: 20})
		for i := range 30 {
			b.create(fmt.Sprint("acme/n", i), fmt.Sprint("other/n", i))
		}
		var refused *store.ScanLimitError
		if _, err := b.Select(t.Context(), mustParse(t, "rank:5")); !errors.As(err, &refused) || refused.Rows != 20 {
			t.Errorf("got %v", err)
		}
		if nodes := b.find("nodeType:Task limit:5"); len(nodes) != 5 {
			t.Errorf("one that stops early: %d nodes", len(nodes))
		}
		if nodes := b.find("path:acme/n1|acme/n2"); len(nodes) != 2 {
			t.Errorf("one that looks at two: %d nodes", len(nodes))
		}
	})
	t.Run("a query whose terms would look at too much is refused", func(t *testing.T) {
		b := setup(t, open, Options{})
		for i := range 30 {
			b.create(fmt.Sprintf("acme/n%02d", i))
		}
		dear := mustParse(t, "(nosuch1 OR nosuch2 OR rank:77 OR name:*no*such*)")
		var refused *store.ScanLimitError
		if nodes, err := b.Select(t.Context(), dear.Within(5000)); !errors.As(err, &refused) || refused.Work != 5000 {
			t.Errorf("%d nodes, %v", len(nodes), err)
		}
		if _, err := b.Select(t.Context(), dear); err != nil {
			t.Errorf("with the usual bound: %v", err)
		}
		if nodes, err := b.Select(t.Context(), mustParse(t, "nodeType:Task limit:2").Within(5000)); err != nil || len(nodes) != 2 {
			t.Errorf("one that stops early: %d nodes, %v", len(nodes), err)
		}
	})
	t.Run("a query that would return too many bytes is refused", func(t *testing.T) {
		b := setup(t, open, Options{ScanBytes: 500})
		for i := range 30 {
			b.create(fmt.Sprintf("acme/n%02d", i))
		}
		for _, text := range []string{"nodeType:Task", "nodeType:Task sort:name", "version:1"} {
			var refused *store.ScanLimitError
			if nodes, err := b.Select(t.Context(), mustParse(t, text)); !errors.As(err, &refused) || refused.Bytes != 500 {
				t.Errorf("%s: %d nodes, %v", text, len(nodes), err)
			}
		}
		if nodes := b.find("nodeType:Task limit:5"); len(nodes) != 5 {
			t.Errorf("%d nodes", len(nodes))
		}
		if nodes := b.find("nodeType:Task select:name"); len(nodes) != 30 {
			t.Errorf("%d nodes", len(nodes))
		}
	})
}

// compare asks the store and the matcher, and returns the number of nodes found.
func compare(t *testing.T, b bench, all []node.Node, text string) int {
	t.Helper()
	q := mustParse(t, text)
	want, err := q.Collect(func(yield func(node.Node, error) bool) {
		for _, n := range all {
			if !yield(n, nil) {
				return
			}
		}
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Select(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if g, w := names(got), names(want); g != w {
		t.Fatalf("%s\ngot  %s\nwant %s", text, g, w)
	}
	for i := range got {
		same(t, want[i], got[i])
	}
	return len(got)
}

func names(nodes []node.Node) string {
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(n.Path))
	}
	return b.String()
}

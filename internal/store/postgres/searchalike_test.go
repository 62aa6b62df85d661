package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// texter makes nodes and queries in which letters fold, escape and repeat. Two of one seed make the same.
type texter struct{ *rand.Rand }

func newTexter(seed uint64) texter { return texter{rand.New(rand.NewPCG(seed, 4))} }

var pieces = []string{"launch", "Ground", "straße", "STRASSE", "\u212Aelvin", "kelvin", "İzmir", "ılık", "Σίσυφος", "ΣΊΣΥΦΟΣ", "ſecret", "日本語の本", "e\u0301te", "été",
	"c++", "a-b_c", "100%", `say "no"`, `back\slash`, "tab\there", "nul\x00byte", "x", "of", "  ", "word1", "word2", "word22", "Ǆungla", "ǆ", "ﬁne", "\U0001F600 smile"}

func (r texter) piece() string { return pieces[r.IntN(len(pieces))] }

func (r texter) text(most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(r.piece())
		b.WriteString([]string{" ", "", "\n", ", "}[r.IntN(4)])
	}
	return b.String()
}

func (r texter) value(depth int) any {
	switch k := r.IntN(6); {
	case k == 0:
		return r.IntN(1000)
	case k < 3 && depth < 5:
		return []any{r.value(depth + 1), r.value(depth + 1)}
	case k < 4 && depth < 5:
		return map[string]any{"a": r.value(depth + 1), r.piece(): r.value(depth + 1)}
	}
	return r.text(3)
}

func (r texter) fillIn(n node.Node) node.Node {
	plain := func(text string) string { return strings.ReplaceAll(text, "\x00", "") }
	n.Name, n.Description = plain(r.text(2)), plain(r.text(3))
	n.NodeType = []string{"Task", "Markdown", "launchpad", ""}[r.IntN(4)]
	n.Content = node.Content{}
	switch r.IntN(400) {
	case 0:
	case 1: // more than the index holds
		var b strings.Builder
		for range 70_000 {
			b.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(36)])
		}
		text, _ := json.Marshal(map[string]any{"long": b.String() + r.piece()})
		n.Content = node.RawContent(string(text))
	case 2: // no more than it reads
		text, _ := json.Marshal(map[string]any{"long": strings.Repeat("ab ", 360_000) + r.piece()})
		n.Content = node.RawContent(string(text))
	default:
		text, _ := json.Marshal(r.value(0))
		n.Content = node.RawContent(string(text))
	}
	return n
}

func (r texter) term() string {
	runes := []rune(r.piece() + []string{"", " "}[r.IntN(2)] + r.piece())
	from := r.IntN(max(1, len(runes)-3))
	term := string(runes[from:min(len(runes), from+3+r.IntN(6))])
	switch r.IntN(4) {
	case 0:
		term = strings.ToUpper(term)
	case 1:
		term = strings.ToLower(term)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", "", "\t", "").Replace(term) + `"` // a query holds no control characters
}

func (r texter) query() string {
	text := r.term()
	switch r.IntN(8) {
	case 0:
		text += " " + r.term()
	case 1:
		text = "(" + text + " OR " + r.term() + ")"
	case 2:
		text = "(" + text + " OR " + r.term() + " OR " + r.term() + ") " + r.term()
	case 3:
		text += " -" + r.term()
	case 4:
		text = "(" + text + " OR nodeType:Task) " + r.term()
	case 5:
		text = "-(" + text + " OR " + r.term() + ")"
	}
	if strings.Contains(text, " OR ") && !strings.Contains(text, "(") {
		return text
	}
	return strings.Join(strings.Fields(strings.Join([]string{[]string{"", "", "path:acme/a scope:subtree", "namespace:acme scope:children", "path:acme/a/_Thread scope:subtree", "path:acme/a scope:hierarchy", "scope:nextLevel path:acme"}[r.IntN(7)], "@",
		[]string{"", "", "limit:3", "sort:name limit:4", "nodeType:Task", "select:name"}[r.IntN(6)]}, " ")), " ") + "\x00" + text
}

// whole puts the terms of a query back: they hold blanks that count.
func whole(q string) string {
	frame, text, framed := strings.Cut(q, "\x00")
	if !framed {
		return q
	}
	return strings.Replace(frame, "@", text, 1)
}

func (r texter) path() string {
	return "acme/" + []string{"", "a/", "b/", "a/_Thread/", "été/"}[r.IntN(5)] + []string{"n", "Launch", "k-"}[r.IntN(3)] + fmt.Sprint(r.IntN(40))
}

// scribble has a writer create, change and delete random nodes.
func (r texter) scribble(ctx context.Context, t testing.TB, s *postgres.Store) {
	path := node.Path(r.path())
	n, err := s.Read(ctx, path)
	w := store.Write{Op: store.OpUpdate, Node: n, Expected: n.Version}
	var missing *store.NotFoundError
	switch {
	case errors.As(err, &missing):
		w = store.Write{Op: store.OpCreate, Node: sample(string(path), missing.LastVersion)}
		w.Node.MainNode = path.Main()
	case err != nil:
		t.Error(err)
		return
	case r.IntN(4) == 0:
		w = remove(string(path), n.Version+1)
	}
	if w.Op != store.OpDelete {
		w.Node = r.fillIn(w.Node)
		w.Node.Version++
	}
	results, err := s.Commit(ctx, []store.Write{w})
	if err != nil {
		t.Error(err)
		return
	}
	switch err := results[0].Err; {
	case err == nil, errors.As(err, new(*store.ConflictError)), errors.As(err, new(*store.ExistsError)), errors.As(err, new(*store.NotFoundError)):
	default:
		t.Errorf("%s: %v", path, err)
	}
}

// data §5.1: every store answers alike; the answer by the index is that of a look at all nodes, at every moment
func TestTheTextIndexAnswersAsALookAtAllNodesDoesWhateverIsWritten(t *testing.T) {
	t.Parallel()
	url := database(t)
	a := open(t, postgres.Restless(postgres.Options{URL: url, Origin: "a"}))
	b := open(t, postgres.Restless(postgres.Options{URL: url, Origin: "b"}))
	other := stranger(t, url)
	space(t, a, "acme")
	r := newTexter(1)
	for range 150 {
		r.scribble(t.Context(), t, a) // there is a database before there is an index
	}
	x := fill(t, a)
	settled(t, a)

	stop, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	for i, s := range []*postgres.Store{a, b} {
		work.Go(func() {
			for r := newTexter(uint64(10 + i)); stop.Err() == nil; {
				r.scribble(context.Background(), t, s)
			}
		})
	}
	asked, used, found := 0, 0, 0
	ask := func(n int) {
		for range n {
			count, by := alike(t, b, whole(r.query()))
			if asked++; by {
				used++
			}
			found += min(1, count)
		}
	}
	ask(100)
	// Another program writes, too, and deletes, and changes main nodes.
	for i := range 30 {
		path := fmt.Sprint("acme/theirs", i%7)
		content, _ := json.Marshal(map[string]any{"text": r.text(4)})
		exec(t, other, `insert into mesh_nodes (path, main_node, folded, version, description, content) values ($1, $1, '', 1, $2, $3)
on conflict (path) do update set description = excluded.description, content = excluded.content`, path, strings.ReplaceAll(r.piece(), "\x00", ""), string(content))
		if i%5 == 4 {
			exec(t, other, "delete from mesh_nodes where path = $1", path)
		}
		ask(3)
	}
	// What a consumer has to compare everything for.
	exec(t, other, "truncate mesh_nodes")
	ask(20)
	eventually(t, "the index to be whole after a truncation", func() error {
		if s, err := b.Search(t.Context()); err != nil || !s.Whole {
			return fmt.Errorf("%+v %v", s, err)
		}
		return nil
	})
	ask(40)
	x.close() // another process goes on
	ask(20)
	fill(t, b)
	ask(40)
	cancel()
	work.Wait()
	settled(t, a)
	before := used
	ask(100)
	if used-before < 50 || used*4 < asked || found*10 < asked*3 {
		t.Errorf("of %d queries %d went by the index, %d of the last 100, and %d found something: the comparison says too little", asked, used, used-before, found)
	}
	t.Logf("%d queries, %d by the index, %d found something", asked, used, found)
	orphans(t, other)
}

// orphans checks that the index holds what there is, and no more.
func orphans(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	var n int
	if err := conn.QueryRow(t.Context(), "select count(*) from mesh_nodes n full join mesh_search s on s.path = n.path and s.version = n.version where n.path is null or s.path is null").Scan(&n); err != nil || n != 0 {
		t.Error(n, "rows of the index are not those of the nodes", err)
	}
}

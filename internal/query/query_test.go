package query_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
)

func must(t testing.TB, text string) query.Query {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}

func at(path string, change ...func(*node.Node)) node.Node {
	p := node.Path(path)
	n := node.Node{Path: p, MainNode: p.Main(), State: node.StateActive, Name: p.ID(), Version: 1}
	for _, f := range change {
		f(&n)
	}
	return n
}

func typed(t string) func(*node.Node) { return func(n *node.Node) { n.NodeType = t } }

func content(text string) func(*node.Node) {
	return func(n *node.Node) {
		c, err := node.ParseContent([]byte(text), node.DefaultLimits)
		if err != nil {
			panic(err)
		}
		n.Content = c
	}
}

// mesh is a small tree with everything in it that a query can trip over.
func mesh() []node.Node {
	two, ten := 2, 10
	nodes := []node.Node{
		at("_Access/root", typed(node.TypeAccessAssignment)),
		at("acme", typed(node.TypeSpace), func(n *node.Node) { n.Name = "Acme" }),
		at("acme-2", typed(node.TypeSpace)),
		at("acme/Stories", typed("Markdown")),
		at("acme/Stories/launch", typed("Markdown"), func(n *node.Node) { n.Name, n.Order, n.Category = "The Launch", &two, "News" },
			content(`{"$type":"Markdown","markdown":"Hello\nWörld","status":"Open","rank":10,"done":false,"due":"2026-06-26T10:00:00Z","tags":["a","B"],"deep":{"er":{"est":"below","too":{"far":"hidden"}}}}`)),
		at("acme/Stories/landing", typed("Markdown"), func(n *node.Node) { n.Order, n.State, n.Description = &ten, node.StateRejected, "100% of a_b" }, content(`{"status":"closed","rank":9.5,"none":null}`)),
		at("acme/Stories/launch/_Thread/1", typed("Thread")),
		at("acme/Stories/launch/_Thread/1/_ThreadMessage/2", typed("ThreadMessage"), func(n *node.Node) { n.Name = "hello" }),
		at("acme/_Access/Emma", typed(node.TypeAccessAssignment), content(`{"accessObject":"Emma","roles":[{"role":"Admin"},{"role":"Viewer","denied":true}]}`)),
		at("acme/_Hidden/x", typed("Markdown")),
		at("acme/far/off/leaf", typed("Task"), func(n *node.Node) { n.ExcludeFromContext = []string{"search", "browse"} }),
		at("acme/far/off/leaf/below", typed("Task"), func(n *node.Node) {
			n.CreatedAt = time.Date(2026, 6, 26, 12, 0, 0, 0, time.UTC)
			n.CreatedBy = "emma"
		}),
		at("acme/new", func(n *node.Node) { n.State = node.StateTransient }),
		at("acme/new/below", typed("Task")),
		at("other", typed(node.TypeUser)),
		at("other/launch", typed("Launch")),
	}
	slices.SortFunc(nodes, func(a, b node.Node) int { return a.Path.Compare(b.Path) })
	return nodes
}

func over(nodes []node.Node) iter.Seq2[node.Node, error] {
	return func(yield func(node.Node, error) bool) {
		for _, n := range nodes {
			if !yield(n, nil) {
				return
			}
		}
	}
}

func result(t testing.TB, q query.Query) string {
	t.Helper()
	nodes, err := q.Collect(over(mesh()), 0)
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, len(nodes))
	for i, n := range nodes {
		paths[i] = string(n.Path)
	}
	return strings.Join(paths, " ")
}

// data §5.1, invariant 28
func TestEveryProductionOfTheGrammarSelectsWhatItSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, want string }{
		// terms
		{`launch`, "acme/Stories/launch other/launch"},
		{`LAUNCH markdown`, "acme/Stories/launch"},
		{`"the launch"`, "acme/Stories/launch"},
		{`"a_b"`, "acme/Stories/landing"},
		{`wörld`, "acme/Stories/launch"},
		{`WÖRLD`, "acme/Stories/launch"},
		{`below`, "acme/Stories/launch acme/far/off/leaf/below acme/new/below"},
		{`hidden namespace:acme/Stories`, ""},
		{`launch AND markdown`, "acme/Stories/launch"},
		{`nodeType:Launch OR name:landing`, "acme/Stories/landing other/launch"},
		{`category:News nodeType:Markdown OR nodeType:Launch`, "acme/Stories/launch other/launch"},
		{`(nodeType:Task OR nodeType:Launch) path:other scope:subtree`, "other/launch"},
		{`launch -nodeType:Markdown`, "other/launch"},
		{`launch -"the launch"`, "other/launch"},
		{`nodeType:Task -(below OR emma)`, "acme/far/off/leaf"},
		{`ORDER`, ""},
		{`-launch nodeType:Launch|Task`, "acme/far/off/leaf acme/far/off/leaf/below acme/new/below"},
		// values
		{`nodeType:Task|Launch`, "acme/far/off/leaf acme/far/off/leaf/below acme/new/below other/launch"},
		{`nodeType:(Task OR Launch)`, "acme/far/off/leaf acme/far/off/leaf/below acme/new/below other/launch"},
		{`name:"the launch"`, "acme/Stories/launch"},
		{`name:la*`, "acme/Stories/landing other/launch"},
		{`name:*a*n*`, "acme/Stories/landing acme/Stories/launch other/launch"},
		{`name:"la*"`, ""},
		{`description:*100%*a_b`, "acme/Stories/landing"},
		{`description:100_*`, ""},
		{`nodeType:task`, ""},
		{`category:news`, "acme/Stories/launch"},
		{`nodeType: namespace:acme`, "acme/new"},
		{`category:* nodeType:Markdown`, "acme/Stories/launch"},
		{`-category: nodeType:Markdown`, "acme/Stories/launch"},
		{`-category:News nodeType:Markdown namespace:acme/Stories`, "acme/Stories/landing"},
		{`-name:la* namespace:acme/Stories`, "acme/Stories/launch"},
		{`-nodeType:Task|Launch -nodeType:Space|User|Markdown`, "acme/new"},
		// comparisons
		{`rank:>9.5`, "acme/Stories/launch"},
		{`rank:>=9.5`, "acme/Stories/landing acme/Stories/launch"},
		{`rank:<10.0`, "acme/Stories/landing"},
		{`rank:<=10`, "acme/Stories/landing acme/Stories/launch"},
		{`rank:10.0`, "acme/Stories/launch"},
		{`-rank:>9.5`, "acme/Stories/landing"},
		{`order:>2`, "acme/Stories/landing"},
		{`version:>1`, ""},
		{`createdDate:2026-06-26`, "acme/far/off/leaf/below"},
		{`createdDate:>2026-06-26`, ""},
		{`createdDate:>=2026-06-26 createdDate:<2026-06-26T12:00:01Z`, "acme/far/off/leaf/below"},
		{`createdDate:<2026-06-26T12:00:00Z`, ""},
		{`due:<=2026-06-26`, "acme/Stories/launch"},
		{`due:>2026-06-26T09:59:00Z`, "acme/Stories/launch"},
		{`status:>closed`, "acme/Stories/launch"},
		// fields
		{`status:open`, "acme/Stories/launch"},
		{`content.status:OPEN`, "acme/Stories/launch"},
		{`$type:Markdown`, "acme/Stories/launch"},
		{`done:false`, "acme/Stories/launch"},
		{`tags:b`, "acme/Stories/launch"},
		{`-tags:b status:*`, "acme/Stories/landing"},
		{`deep.er.est:below`, "acme/Stories/launch"},
		{`-none: status:*`, ""},
		{`state:rejected`, "acme/Stories/landing"},
		{`state:Transient|3`, "acme/Stories/landing acme/new"},
		{`excludeFromContext:browse`, "acme/far/off/leaf"},
		{`createdBy:EMMA`, "acme/far/off/leaf/below"},
		{`roles.role:admin mainNode:acme`, "acme/_Access/Emma"},
		{`id:launch`, "acme/Stories/launch other/launch"},
		// paths and scopes
		{`path:acme/Stories`, "acme/Stories"},
		{`path:/acme/Stories/`, "acme/Stories"},
		{`path:acme/Stories|other/launch`, "acme/Stories other/launch"},
		{`path:(acme OR other)`, "acme other"},
		{`path:acme/far/*`, "acme/far/off/leaf acme/far/off/leaf/below"},
		{`path:*/launch`, "acme/Stories/launch other/launch"},
		{`path:acme scope:exact`, "acme"},
		{`path:acme scope:whatever`, "acme"},
		{`path:acme scope:children`, "acme/Stories acme/new"},
		{`path:acme/Stories scope:descendants`, "acme/Stories/landing acme/Stories/launch"},
		{`path:acme/Stories/launch scope:ancestors`, "acme acme/Stories"},
		{`path:acme/Stories/launch scope:selfAndAncestors`, "acme acme/Stories acme/Stories/launch"},
		{`path:acme/Stories/launch scope:mySelfAndAncestors nodeType:Space`, "acme"},
		{`path:acme/Stories scope:hierarchy`, "acme acme/Stories acme/Stories/landing acme/Stories/launch"},
		{`path:acme/Stories scope:subtree`, "acme/Stories acme/Stories/landing acme/Stories/launch"},
		{`path:acme/Stories scope:SelfAndDescendants`, "acme/Stories acme/Stories/landing acme/Stories/launch"},
		{`namespace:acme/Stories`, "acme/Stories/landing acme/Stories/launch"},
		{`namespace:acme/far scope:subtree`, "acme/far/off/leaf acme/far/off/leaf/below"},
		{`namespace:acme/Stories|other`, "acme/Stories/landing acme/Stories/launch other/launch"},
		{`namespace:acme/far*`, "acme/far/off/leaf acme/far/off/leaf/below"},
		{`namespace:`, "acme acme-2 other"},
		{`namespace:acme -path:acme/new`, "acme/Stories"},
		{`nodeType:Task (path:acme/new/below OR path:"acme/far/off/leaf")`, "acme/far/off/leaf acme/new/below"},
		{`sort:name`, "acme acme-2 other"},
		{`nodeType:Task|Space scope:descendants`, "acme acme/far/off/leaf acme/far/off/leaf/below acme/new/below acme-2"},
		{`nodeType:Task|User scope:descendants`, "acme/far/off/leaf acme/far/off/leaf/below acme/new/below"},
		// satellites
		{`path:acme/Stories/launch/_Thread scope:subtree`, "acme/Stories/launch/_Thread/1 acme/Stories/launch/_Thread/1/_ThreadMessage/2"},
		{`path:acme/Stories/launch/_Thread/1`, "acme/Stories/launch/_Thread/1"},
		{`nodeType:Thread namespace:acme/Stories`, "acme/Stories/launch/_Thread/1"},
		{`nodeType:ThreadMessage path:acme/Stories/launch`, "acme/Stories/launch/_Thread/1/_ThreadMessage/2"},
		{`nodeType:Thread namespace:acme`, ""},
		{`nodeType:AccessAssignment`, "_Access/root acme/_Access/Emma"},
		{`-is:main path:acme`, "acme/_Access/Emma"},
		{`is:main hello`, "acme/Stories/launch"},
		{`mainNode:acme/Stories/launch`, "acme/Stories/launch acme/Stories/launch/_Thread/1 acme/Stories/launch/_Thread/1/_ThreadMessage/2"},
		{`path:acme/_Access/*`, "acme/_Access/Emma"},
		// sort, limit, context
		{`namespace:acme/Stories sort:order-desc`, "acme/Stories/landing acme/Stories/launch"},
		{`namespace:acme/Stories sort:rank`, "acme/Stories/landing acme/Stories/launch"},
		{`namespace:acme/Stories sort:rank-desc limit:1`, "acme/Stories/launch"},
		{`nodeType:Task sort:length(path)-desc`, "acme/far/off/leaf/below acme/far/off/leaf acme/new/below"},
		{`nodeType:Markdown sort:order`, "acme/Stories/launch acme/Stories/landing acme/Stories acme/_Hidden/x"},
		{`nodeType:Markdown sort:order-desc`, "acme/Stories/landing acme/Stories/launch acme/Stories acme/_Hidden/x"},
		{`nodeType:Markdown sort:nodeType,lower(id)-desc`, "acme/_Hidden/x acme/Stories acme/Stories/launch acme/Stories/landing"},
		{`nodeType:Markdown limit:2`, "acme/Stories acme/Stories/landing"},
		{`nodeType:Markdown|Task context:search`, "acme/Stories acme/Stories/landing acme/Stories/launch acme/far/off/leaf/below acme/new/below"},
		{`nodeType:Task context:browse`, "acme/far/off/leaf/below acme/new/below"},
		{`nodeType:Thread context:search`, ""},
	} {
		if got := result(t, must(t, c.query)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.query, got, c.want)
		}
	}
}

// invariant 29: segment-aware, skips empty levels, excludes self
func TestTheNextLevelIsTheNearestActiveNodeOfEachBranch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, want string }{
		{`path:acme scope:nextLevel`, "acme/Stories acme/_Hidden/x acme/far/off/leaf acme/new/below"},
		{`path:acme/Stories scope:populated`, "acme/Stories/launch"},
		{`path:acme scope:nextLevel nodeType:Task`, "acme/far/off/leaf acme/new/below"},
		{`scope:nextLevel`, "acme acme-2 other"},
	} {
		if got := result(t, must(t, c.query)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.query, got, c.want)
		}
	}
}

func TestADefaultPathCountsWhereTheQueryNamesNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, want string }{
		{`nodeType:Task`, "acme/far/off/leaf acme/far/off/leaf/below acme/new/below"},
		{`sort:path`, "acme/Stories acme/new"},
		{`scope:exact nodeType:Space`, "acme"},
		{`path:other`, "other"},
	} {
		if got := result(t, must(t, c.query).WithDefaultPath("acme")); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.query, got, c.want)
		}
	}
}

// invariant 35: omitting content gives no content
func TestSelectTakesTheContentUnlessItIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"select:name,path": false, "select:name,content": true, "select:rank": true, "": true} {
		nodes, err := must(t, "path:acme/Stories/launch sort:rank "+text).Collect(over(mesh()), 0)
		if err != nil || len(nodes) != 1 || nodes[0].Content.IsZero() == want {
			t.Errorf("%q: %v, %v", text, nodes, err)
		}
	}
}

func TestABadQueryIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query  string
		offset int
		reason string
	}{
		{``, 0, "empty"}, {`   `, 3, "empty"}, {`a OR`, 4, "term"}, {`OR a`, 0, "term"}, {`a OR OR b`, 5, "term"},
		{`()`, 1, "term"}, {`(a`, 0, "')'"}, {`a)`, 1, "'('"}, {`)`, 0, "'('"}, {`"abc`, 0, "closing"}, {`name:"abc`, 5, "closing"},
		{`name:(a b)`, 8, "'OR'"}, {`name:(a OR`, 10, "value"}, {`name:()`, 6, "value"}, {`name:a|`, 7, "both sides"}, {`name:|a`, 5, "both sides"},
		{`rank:>`, 6, "one value"}, {`rank:>1|2`, 6, "one value"}, {`rank:>a*`, 6, "one value"},
		{`limit:0`, 6, "number"}, {`limit:x`, 6, "number"}, {`limit:1000001`, 6, "number"}, {`limit:`, 6, "value"},
		{`a limit:1 limit:2`, 10, "twice"}, {`path:a path:b`, 7, "twice"}, {`path:a namespace:b`, 7, "both"},
		{`-scope:children`, 0, "negated"}, {`(scope:children)`, 1, "parentheses"}, {`a OR path:b`, 5, "OR"}, {`path:a OR b`, 7, "OR"},
		{`path:a/../b`, 5, "'..'"}, {`path:>a`, 5, "order"}, {`is:new`, 3, "main"}, {`sort:size(path)`, 5, "length"}, {`sort:lower(path`, 5, "length"},
		{`state:Gone`, 6, "Transient"}, {`order:x`, 6, "number"}, {`createdDate:yesterday`, 12, "time"},
		{strings.Repeat("(", 60), 51, "more than 50"}, {strings.Repeat("a ", 300), 400, "more than 200"}, {strings.Repeat("a", 9000), 8192, "bytes"},
		{"a\x00", 1, "control"}, {"a\xff", 1, "UTF-8"},
	} {
		_, err := query.Parse(c.query)
		var refused *query.SyntaxError
		if !errors.As(err, &refused) || refused.Offset != c.offset || !strings.Contains(refused.Reason, c.reason) {
			t.Errorf("%.30q: %v; want offset %d and %q", c.query, err, c.offset, c.reason)
		}
	}
	for _, text := range []string{`[a,b]`, `source:activity`, `a source:accessed`} {
		var unsupported *query.UnsupportedError
		if _, err := query.Parse(text); !errors.As(err, &unsupported) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheZeroQueryMatchesNothing(t *testing.T) {
	t.Parallel()
	if got := result(t, query.Query{}); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestACandidatesErrorEndsTheCollection(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := must(t, "a").Collect(func(yield func(node.Node, error) bool) {
		_ = yield(at("a"), nil) && yield(node.Node{}, broken)
	}, 0)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestASortedLimitKeepsTheBestOfManyInBoundedMemory(t *testing.T) {
	t.Parallel()
	q := must(t, "nodeType:Task sort:version-desc limit:3")
	nodes, err := q.Collect(func(yield func(node.Node, error) bool) {
		for i := range 10_000 {
			n := at(fmt.Sprintf("acme/%05d", i), typed("Task"))
			n.Version = int64(i * 7919 % 10_007)
			if !yield(n, nil) {
				return
			}
		}
	}, 0)
	if err != nil || len(nodes) != 3 || nodes[0].Version != 10_006 || nodes[1].Version != 10_005 || nodes[2].Version != 10_004 {
		t.Errorf("got %v, %v", nodes, err)
	}
}

func TestAResultThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	var refused *query.SizeError
	if _, err := must(t, "hello").Collect(over(mesh()), 10); !errors.As(err, &refused) || refused.Bytes != 10 {
		t.Errorf("got %v", err)
	}
	if nodes, err := must(t, "hello select:name").Collect(over(mesh()), 10); err != nil || len(nodes) == 0 {
		t.Errorf("without contents: %v, %v", nodes, err)
	}
}

func TestAQuerySaysWhetherItLooksIntoContents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"path:acme": false, "nodeType:Task sort:name": false, "launch": true, "nodeType:Task (rank:>1 OR name:x)": true,
		"nodeType:Task sort:rank": true, "-status:open": true, "-(name:a OR -b)": true,
	} {
		if got := must(t, text).NeedsContent(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestEveryMatchIsWithinTheBounds(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"exact", "children", "descendants", "ancestors", "hierarchy", "subtree", "ancestorsAndSelf", "nextLevel"} {
		for _, base := range []string{"", "path:acme", "path:acme/Stories|other", "namespace:acme/Stories/launch", "path:acme/Stories/launch/_Thread/1", "path:acme/far*"} {
			for _, where := range []string{"", "nodeType:Task", "nodeType:Thread|AccessAssignment", "-is:main", "(path:acme* nodeType:Task)", "launch", "-nodeType:Task"} {
				q, err := query.Parse(base + " scope:" + scope + " " + where)
				if err != nil {
					t.Fatal(err)
				}
				bounds := q.Bounds()
				for _, n := range mesh() {
					if q.Match(n) && !bounds.Admits(n) {
						t.Errorf("%s: %s matches outside of the bounds %+v", q, n.Path, bounds)
					}
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`a OR (b -c:d|e) "f g"`, `path:acme scope:subtree sort:length(path)-desc limit:5 select:a,b`, `x:>=5 -y:(a OR "b c")`, `name:*a*`,
		`createdDate:>2026-06-26`, `is:main context:search`, `state:New|2`, `nodeType:Thread`, `[a]`, `-(a)`, `""`, `a:"\""`, `ſ`, `namespace:a/_Thread*`,
	} {
		f.Add(seed)
	}
	nodes := mesh()
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text)
		if err != nil {
			var syntax *query.SyntaxError
			var unsupported *query.UnsupportedError
			switch {
			case errors.As(err, &unsupported):
			case !errors.As(err, &syntax):
				t.Fatalf("not a typed error: %v", err)
			case syntax.Offset < 0 || syntax.Offset > len(text):
				t.Fatalf("the offset %d is outside of the text", syntax.Offset)
			}
			return
		}
		bounds := q.Bounds()
		for _, n := range nodes {
			if q.Match(n) && !bounds.Admits(n) {
				t.Fatalf("%s matches outside of the bounds %+v", n.Path, bounds)
			}
		}
		found, err := q.Collect(over(nodes), 0)
		if err != nil || q.Limit() > 0 && len(found) > q.Limit() {
			t.Fatalf("%d nodes, %v", len(found), err)
		}
	})
}

func BenchmarkTextTermOver13KiB(b *testing.B) {
	n := at("acme/doc", content(`{"$type":"Markdown","markdown":"`+strings.Repeat(`A line of a document, with words in it.\n`, 330)+`"}`))
	q := must(b, "nowhere")
	b.SetBytes(int64(n.Content.Len()))
	for b.Loop() {
		if q.Match(n) {
			b.Fatal("it matches")
		}
	}
}

// bad input: a query that takes too long by itself, and would take as long at the next try
func TestAQueryWhoseTermsLookAtTooMuchIsRefused(t *testing.T) {
	many := func(yield func(node.Node, error) bool) {
		for i := range 1000 {
			p := node.Path(fmt.Sprintf("a/n%d", i))
			n := node.Node{Path: p, MainNode: p, NodeType: "Task", Content: node.RawContent(`{"t":"` + strings.Repeat("x", 1000) + `"}`)}
			if !yield(n, nil) {
				return
			}
		}
	}
	for text, most := range map[string]int64{
		"(y1 OR y2)":             2_000_000, // the content is looked at twice
		"y1":                     1_000_000,
		"content.t:*y*z*":        3_000_000, // a member is looked for, and its text looked at
		"content.t:(*y* OR *z*)": 4_000_000,
		"preRenderedHtml:y":      32_000,
	} {
		q := must(t, text+" scope:subtree")
		var refused *query.WorkError
		if _, err := q.Within(most-10_000).Collect(many, 0); !errors.As(err, &refused) || refused.Bytes != most-10_000 {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := q.Within(3*most).Collect(many, 0); err != nil {
			t.Errorf("%s with enough: %v", text, err)
		}
	}
	if got, err := must(t, "xx limit:3").Within(20_000).Collect(many, 0); err != nil || len(got) != 3 {
		t.Errorf("one that ends early: %d %v", len(got), err)
	}
	if _, err := must(t, "nodeType:Space y1 y2 y3 scope:subtree").Within(200_000).Collect(many, 0); err != nil {
		t.Errorf("terms behind one that does not hold cost nothing: %v", err)
	}
}

// BenchmarkWork shows what a GiB of work takes at the worst.
func BenchmarkWork(b *testing.B) {
	texts := strings.Repeat(`{"a":"größer \"als\" x","k":[1,2,3],"s":"lorem ipsum dolor sit amet"},`, 400)
	n := node.Node{Path: "a/b", MainNode: "a/b", NodeType: "Task", Name: "x", Content: node.RawContent(`{"l":[` + texts[:len(texts)-1] + `]}`)}
	if c, err := node.ParseContent([]byte(n.Content.Text()), node.DefaultLimits); err != nil {
		b.Fatal(err)
	} else {
		n.Content = c
	}
	for _, text := range []string{"zzzz", "größte", "*1*x*z*", "content.l.a:*q*z*", "content.l.k:>5", `l.a:"a\"b"`} {
		q, err := query.Parse(text + " scope:subtree")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.SetBytes(int64(n.Content.Len()))
			for b.Loop() {
				q.Match(n)
			}
		})
	}
}

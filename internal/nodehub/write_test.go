package nodehub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.3.1
func TestAVersionIsMintedOnlyOnAProvenChange(t *testing.T) {
	r := newRig(t)
	if n := r.create("acme/a", "", `{"x":1,"y":{"z":2}}`); n.Version != 1 {
		t.Fatalf("created at %d", n.Version)
	}
	if n := r.patch("acme/a", `{"content":{"y":{"z":2}}}`); n.Version != 1 {
		t.Fatalf("an empty change minted %d", n.Version)
	}
	if n := r.patch("acme/a", `{"content":{"x":2}}`); n.Version != 2 || n.ModifiedBy != "root" {
		t.Fatalf("%d by %s", n.Version, n.ModifiedBy)
	}
	if n := r.get("acme/a"); member(t, n, "x") != 2.0 || member(t, n, "y") == nil {
		t.Fatal(n.Content)
	}
}

// data §1.3.1; issue 4: what is acknowledged is safe, also where nothing had to be changed
func TestAWriteThatChangesNothingIsAcknowledgedOnlyOnceWhatIsThereIsSafe(t *testing.T) {
	r := newRig(t)
	n := r.create("acme/a", "", `{"x":1}`)
	unsafe := &store.UnavailableError{Op: "settle", Hint: "the standby is away", Transient: true}
	settled := 0
	answer := error(unsafe)
	r.store.mu.Lock()
	r.store.onSettle = func() error { settled++; return answer }
	r.store.mu.Unlock()
	writes := map[string]func(text string) error{
		"patch": func(text string) error {
			_, err := r.c.Patch(r.root, "acme/a", []byte(`{"content":`+text+`}`), nodehub.Condition{})
			return err
		},
		"import": func(text string) error {
			n.Content = node.RawContent(text)
			out, err := r.c.Import(r.root, []node.Node{n})
			if err == nil {
				err = out[0].Err
			}
			return err
		},
	}
	for name, write := range writes {
		settled, answer = 0, unsafe
		if got := wantErr[*store.UnavailableError](t, write(`{"x":1}`)); settled != 1 || got.Op != "settle" {
			t.Errorf("%s of what is there: settled %d times, %v", name, settled, got)
		}
		if answer = nil; write(`{"x":1}`) != nil || settled != 2 {
			t.Errorf("%s of what is there, once it is safe: settled %d times", name, settled)
		}
	}
	if settled = 0; writes["patch"](`{"x":2}`) != nil || settled != 0 { // the control
		t.Errorf("a change, which its commit makes safe, settled %d times", settled)
	}
}

// data §1.3.1
// Numbers are kept as they are written, so the spelling of one is part of what is stored.
func TestAWriteThatSpellsANumberAnewIsAChange(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{"x":1.0,"y":-0}`)
	if n := r.patch("acme/a", `{"content":{"x":1}}`); n.Version != 2 || n.Content.Text() != `{"x":1,"y":-0}` {
		t.Errorf("1.0 to 1: version %d, %s", n.Version, n.Content)
	}
	if n := r.patch("acme/a", `{"content":{"y":0}}`); n.Version != 3 || n.Content.Text() != `{"x":1,"y":0}` {
		t.Errorf("-0 to 0: version %d, %s", n.Version, n.Content)
	}
	if n := r.patch("acme/a", `{"content":{"x":1,"y":0}}`); n.Version != 3 {
		t.Errorf("the same spelling: version %d", n.Version)
	}
}

// data §1.3.2
func TestAPatchCannotSteerTheVersionOrTheStamps(t *testing.T) {
	r := newRig(t)
	made := r.create("acme/a", "", `{}`)
	n := r.patch("acme/a", `{"version":900,"createdBy":"eve","lastModifiedBy":"eve","name":"A"}`)
	if n.Version != 2 || n.CreatedBy != "root" || n.ModifiedBy != "root" || !n.CreatedAt.Equal(made.CreatedAt) {
		t.Fatalf("%+v", n)
	}
}

// data §1.3.6
func TestAStaleConditionIsATypedConflictAndWritesNothing(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{"x":1}`)
	r.patch("acme/a", `{"content":{"x":2}}`)
	_, err := r.c.Patch(r.root, "acme/a", []byte(`{"content":{"x":9}}`), nodehub.Condition{Version: 1})
	if c := wantErr[*store.ConflictError](t, err); c.Actual != 2 || c.Expected != 1 {
		t.Fatalf("%+v", c)
	}
	if n := r.get("acme/a"); n.Version != 2 {
		t.Fatal(n.Version)
	}
	_, _, err = r.c.Put(r.root, node.Node{Path: "acme/a", Content: node.RawContent(`{}`)}, nodehub.Condition{Absent: true})
	wantErr[*store.ExistsError](t, err)
}

// data §1.3
// bad input: two writers on one node
func TestManyWritersOfOneNodeGiveContiguousVersionsAndLoseNoWrite(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{}`)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20 {
				if _, err := r.c.Patch(r.root, "acme/a", fmt.Appendf(nil, `{"content":{"w%d":%d}}`, w, i+1), nodehub.Condition{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := r.get("acme/a")
	if n.Version != 1+16*20 {
		t.Fatalf("version %d", n.Version)
	}
	for w := range 16 {
		if member(t, n, fmt.Sprintf("w%d", w)) != 20.0 {
			t.Fatalf("writer %d: %v", w, member(t, n, fmt.Sprintf("w%d", w)))
		}
	}
	var want []string
	for v := range 1 + 16*20 {
		want = append(want, fmt.Sprint(v+1))
	}
	if got := r.versions("acme/a"); got != strings.Join(want, " ") {
		t.Fatal(got)
	}
}

// data §1.3.4
// messaging §1.12
func TestALiveHubTakesAForeignCommitBeforeTheForeignWriterIsAnswered(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{"x":1}`)
	n := r.get("acme/a") // the hub is live now
	n.Content, n.Version = node.RawContent(`{"x":7}`), 2
	res, err := r.commit.Submit(context.Background(), store.Write{Op: store.OpUpdate, Node: n, Expected: 1, Origin: "elsewhere"})
	if err != nil || res.Err != nil {
		t.Fatal(err, res.Err)
	}
	if got := r.get("acme/a"); got.Version != 2 || member(t, got, "x") != 7.0 {
		t.Fatalf("%d %v", got.Version, got.Content)
	}
	if got := r.patch("acme/a", `{"content":{"y":1}}`); got.Version != 3 || member(t, got, "x") != 7.0 {
		t.Fatalf("%d %v", got.Version, got.Content)
	}
}

// data §1.3.4
func TestAWriteThatMeetsANewerVersionIsMergedAgainOverIt(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{"x":1}`)
	r.get("acme/a")
	first := true
	r.store.hook(nil, func(batch []store.Write) {
		if batch[0].Node.Path != "acme/a" || !first {
			return
		}
		first = false
		// Somebody else commits between the merge and the commit.
		n := batch[0].Node
		n.Content = node.RawContent(`{"x":1,"foreign":true}`)
		if res, err := r.store.Store.Commit(context.Background(), []store.Write{{Op: store.OpUpdate, Node: n, Expected: 1, Origin: "elsewhere"}}); err != nil || res[0].Err != nil {
			t.Error(err, res)
		}
	})
	n := r.patch("acme/a", `{"content":{"mine":true}}`)
	if n.Version != 3 || member(t, n, "foreign") != true || member(t, n, "mine") != true {
		t.Fatalf("%d %v", n.Version, n.Content)
	}
}

// data §1.4
// data §1.3.3
func TestDeletingAndCreatingAgainContinuesTheVersions(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{"life":1}`)
	r.patch("acme/a", `{"name":"A"}`)
	reply, err := r.c.Delete(r.root, "acme/a", false, nodehub.Condition{})
	if err != nil || reply.Deleted != 1 || reply.Version != 3 {
		t.Fatalf("%+v %v", reply, err)
	}
	for range 50 { // no window in which the old life answers
		if _, err := r.c.Get(r.root, "acme/a"); err == nil {
			t.Fatal("a deleted node answers")
		}
		if n := r.create("acme/a", "", `{"life":2}`); r.get("acme/a").Version != n.Version {
			t.Fatal("the old life answers for the new one")
		}
		if _, err := r.c.Delete(r.root, "acme/a", false, nodehub.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	n := r.create("acme/a", "", `{"life":3}`)
	if n.Version != 104 || n.Name != "" {
		t.Fatalf("%d %q", n.Version, n.Name)
	}
}

// data §1.4
func TestADeleteNeedsRecursionForChildrenAndTakesTheSatellitesAlong(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{}`)
	r.create("acme/a/b/c", "", `{}`)
	r.create("acme/a/_Comment/1", "", `{}`)
	_, err := r.c.Delete(r.root, "acme/a", false, nodehub.Condition{})
	wantErr[*nodehub.ChildrenError](t, err)
	reply, err := r.c.Delete(r.root, "acme/a", true, nodehub.Condition{})
	if err != nil || reply.Deleted != 3 {
		t.Fatalf("%+v %v", reply, err)
	}
	r.create("acme/b", "", `{}`)
	r.create("acme/b/_Comment/1", "", `{}`)
	if reply, err := r.c.Delete(r.root, "acme/b", false, nodehub.Condition{}); err != nil || reply.Deleted != 2 {
		t.Fatalf("%+v %v", reply, err)
	}
}

// data §1.4
// What configures a node's collections is part of it, as its satellites are: a node with files needs no
// recursion. What stands in the way and is in no listing is named, to who may read it.
func TestADeleteTakesTheConfigurationsOfTheNodesCollectionsAlong(t *testing.T) {
	r := newRig(t)
	collection := func(at string) { r.create(at, nodehub.TypeCollection, `{"sourceType":"folder"}`) }
	r.create("acme/a", "", `{}`)
	collection("acme/a/_Content/content")
	r.create("acme/a/_Content/content/_Activity/1", node.TypeActivity, `{}`)
	if reply, err := r.c.Delete(r.root, "acme/a", false, nodehub.Condition{}); err != nil || reply.Deleted != 3 {
		t.Fatalf("%+v %v", reply, err)
	}
	for _, child := range []string{"acme/b/x", "acme/b/_Inbox/1", "acme/b/_Content/content/x", "acme/b/x/_Content/content"} {
		r.create("acme/b", "", `{}`)
		collection("acme/b/_Content/content")
		if strings.HasSuffix(child, "/content") {
			collection(child)
		} else {
			r.create(child, "", `{}`)
		}
		_, err := r.c.Delete(r.root, "acme/b", false, nodehub.Condition{})
		hidden := node.Path("")
		if strings.HasPrefix(child, "acme/b/_") {
			hidden = node.Path(child)
		}
		if e := wantErr[*nodehub.ChildrenError](t, err); e.Hidden != hidden {
			t.Errorf("%s: %v", child, err)
		}
		if _, err := r.c.Delete(r.root, "acme/b", true, nodehub.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
}

// data §1.4
func TestAWriteBelowASubtreeThatIsBeingDeletedIsRefusedAsTransient(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{}`)
	r.create("acme/a/b", "", `{}`)
	parked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.store.hook(nil, func(batch []store.Write) {
		if batch[0].Op == store.OpDelete {
			once.Do(func() { close(parked); <-release })
		}
	})
	done := make(chan error)
	go func() {
		_, err := r.c.Delete(r.root, "acme/a", true, nodehub.Condition{})
		done <- err
	}()
	<-parked
	for _, path := range []node.Path{"acme/a/new", "acme/a/b/new"} {
		_, err := r.c.Create(r.root, node.Node{Path: path, Content: node.RawContent(`{}`)})
		if f := wantErr[*message.Failure](t, err); !f.Transient() || !strings.Contains(f.Message, "being deleted") {
			t.Fatalf("%s: %v", path, err)
		}
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.create("acme/ab", "", `{}`) // the guard ends at a segment, and with the delete
	r.create("acme/a", "", `{}`)
}

// data §1.4
// edge invariant 47
func TestAPartitionDoesNotComeFromNowhere(t *testing.T) {
	r := newRig(t)
	_, err := r.c.Create(r.root, node.Node{Path: "nowhere/a", Content: node.RawContent(`{}`)})
	wantErr[*store.PartitionError](t, err)
	for _, n := range []node.Node{
		{Path: "top", NodeType: node.TypeMarkdown},
		{Path: "acme/bare"},
		{Path: "acme/_Access/x", NodeType: node.TypeMarkdown},
		{Path: "acme/act", NodeType: node.TypeActivity},
		{Path: "acme/x", NodeType: node.TypeAccessAssignment},
		{Path: "acme/none/_Comment/1", NodeType: node.TypeMarkdown},
	} {
		_, err := r.c.Create(r.root, n)
		wantErr[*nodehub.RuleError](t, err)
	}
}

// data §1.4
func TestContentIsValidatedAgainstTheSchemaOfItsType(t *testing.T) {
	r := newRig(t)
	r.create("acme/Order", node.TypeNodeType, `{"schema":{"type":"object","required":["total"],"properties":{"total":{"type":"number","minimum":0}}}}`)
	_, err := r.c.Create(r.root, node.Node{Path: "acme/o1", NodeType: "acme/Order", Content: node.RawContent(`{"total":-1}`)})
	if e := wantErr[*nodehub.SchemaError](t, err); !strings.Contains(e.Reason, "total") {
		t.Fatal(e)
	}
	r.create("acme/o1", "acme/Order", `{"total":1}`)
	_, err = r.c.Patch(r.root, "acme/o1", []byte(`{"content":{"total":null}}`), nodehub.Condition{})
	wantErr[*nodehub.SchemaError](t, err)
	_, err = r.c.Create(r.root, node.Node{Path: "acme/o2", NodeType: "acme/Nothing", Content: node.RawContent(`{}`)})
	wantErr[*nodehub.TypeError](t, err)
	// The type changes: what is written from then on is held against the new schema.
	r.patch("acme/Order", `{"content":{"schema":{"required":["customer"]}}}`)
	_, err = r.c.Patch(r.root, "acme/o1", []byte(`{"content":{"total":2}}`), nodehub.Condition{})
	wantErr[*nodehub.SchemaError](t, err)
	// A schema may not make the server read anything.
	_, err = r.c.Create(r.root, node.Node{Path: "acme/Evil", NodeType: node.TypeNodeType, Content: node.RawContent(`{"schema":{"$ref":"file:///etc/passwd"}}`)})
	if e := wantErr[*nodehub.SchemaError](t, err); !e.Broken {
		t.Fatal(e)
	}
}

// edge §2.3
func TestWhoeverMayNotReadIsAnsweredLikeWhoeverAsksForNothing(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{}`)
	if err := r.c.Grant(r.root, "acme", "viewer", "Viewer"); err != nil {
		t.Fatal(err)
	}
	stranger, viewer := as("stranger"), as("viewer")
	_, denied := r.c.Get(stranger, "acme/a")
	_, absent := r.c.Get(stranger, "acme/none")
	if a, b := wantErr[*store.NotFoundError](t, denied), wantErr[*store.NotFoundError](t, absent); a.Error() != strings.Replace(b.Error(), "acme/none", "acme/a", 1) || a.LastVersion != 0 {
		t.Fatalf("%v / %v", denied, absent)
	}
	if _, err := r.c.Get(viewer, "acme/a"); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func(ctx context.Context) error{
		"patch": func(ctx context.Context) error {
			_, err := r.c.Patch(ctx, "acme/a", []byte(`{"name":"x"}`), nodehub.Condition{})
			return err
		},
		"put": func(ctx context.Context) error {
			_, _, err := r.c.Put(ctx, node.Node{Path: "acme/a", Content: node.RawContent(`{}`)}, nodehub.Condition{})
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := r.c.Delete(ctx, "acme/a", false, nodehub.Condition{})
			return err
		},
		"create": func(ctx context.Context) error {
			_, err := r.c.Create(ctx, node.Node{Path: "acme/b", Content: node.RawContent(`{}`)})
			return err
		},
	} {
		wantErr[*store.NotFoundError](t, try(stranger))
		if err := try(viewer); err == nil || strings.Contains(err.Error(), "No node found") {
			t.Errorf("%s by a viewer: %v", name, err)
		} else {
			wantErr[*access.DeniedError](t, err)
		}
	}
	if _, err := r.c.Get(context.Background(), "acme/a"); err == nil {
		t.Fatal("a call without identity was answered")
	}
}

// edge §2.3
func TestThePermissionIsAskedOnEveryMessageAndARevocationCountsAtOnce(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{}`)
	if err := r.c.Grant(r.root, "acme", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.c.Patch(as("ed"), "acme/a", []byte(`{"name":"x"}`), nodehub.Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err := r.c.Create(as("ed"), node.Node{Path: "acme/_Access/ed2_Access", NodeType: node.TypeAccessAssignment, Content: node.RawContent(`{"accessObject":"ed","roles":[{"role":"Admin"}]}`)})
	if err == nil {
		t.Fatal("an Editor made himself Admin")
	}
	if _, err := r.c.Delete(r.root, "acme/_Access/ed_Access", false, nodehub.Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err = r.c.Get(as("ed"), "acme/a")
	wantErr[*store.NotFoundError](t, err)
	_, err = r.c.Delete(r.root, "_Access/root_Access", false, nodehub.Condition{})
	wantErr[*access.LastAdminError](t, err)
}

// hub §6
func TestALongContentLivesInTheCacheAndIsReadBackWhenItWasDropped(t *testing.T) {
	r := newRig(t, func(o *nodehub.Options) { o.CacheSize = 10_000 })
	long := `{"text":"` + strings.Repeat("x", 6000) + `"}`
	r.create("acme/a", "", long)
	r.create("acme/b", "", long)
	for range 3 {
		for _, p := range []string{"acme/a", "acme/b"} {
			if n := r.get(p); n.Content.Len() != len(long) {
				t.Fatalf("%s: %d bytes", p, n.Content.Len())
			}
		}
	}
	if n := r.patch("acme/a", `{"name":"A"}`); n.Content.Len() != len(long) || n.Version != 2 {
		t.Fatal("the patch lost the content")
	}
}

// fault 43
func TestASlowStartIsToldByTheOwnerInsideTheReadersBudgetAndTheNodeStartsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(o *nodehub.Options) {
			o.StartDelay = func(p node.Path) time.Duration {
				if p == "acme/slow" {
					return 15 * time.Second
				}
				return 0
			}
		})
		defer r.close()
		r.create("acme/slow", "", `{"x":1}`)
		begin := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := r.c.Get(r.root, "acme/slow")
				if l := wantErr[*budget.Lapse](t, err); l.ReportedBy != budget.ByOwner || !strings.Contains(l.Clause, "STILL STARTING: gate 'Initialize' closed for") || l.By != budget.Read {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took >= 10*time.Second {
			t.Fatalf("told after %v, outside the budget", took)
		}
		<-time.After(15*time.Second - time.Since(begin))
		if n := r.get("acme/slow"); member(t, n, "x") != 1.0 {
			t.Fatal(n)
		}
		if n := r.store.reads["acme/slow"]; n > 3 { // create looks once, the route once, the delayed start once
			t.Fatalf("the row was read %d times", n)
		}
	})
}

// architecture.md, superseded rules: two that differ in case only are refused at create.
func TestASpaceThatDiffersInCaseOnlyIsInTheWay(t *testing.T) {
	r := newRig(t)
	for _, create := range []func() error{
		func() error {
			_, err := r.c.Create(r.root, node.Node{Path: "ACME", NodeType: node.TypeSpace, Content: node.RawContent(`{}`)})
			return err
		},
		func() error {
			_, _, err := r.c.Put(r.root, node.Node{Path: "Acme", NodeType: node.TypeSpace, Content: node.RawContent(`{}`)}, nodehub.Condition{})
			return err
		},
		func() error {
			out, err := r.c.Import(r.root, []node.Node{{Path: "aCME", NodeType: node.TypeSpace, Content: node.RawContent(`{}`)}})
			if err != nil {
				return err
			}
			return out[0].Err
		},
	} {
		if exists := wantErr[*store.ExistsError](t, create()); exists.Other != "acme" || exists.Version != 1 {
			t.Errorf("%+v", exists)
		}
	}
}

// bad input: a path that looks like another one
func TestANewPathHasNothingThatIsNotSeen(t *testing.T) {
	r := newRig(t)
	for path, want := range map[string]string{
		"acme/a\u202eb":    "U+202E, a character that changes the direction",
		"acme/a\u200bb":    "U+200B, a character that is not seen",
		"acme/\ufeffa":     "U+FEFF, a character that is not seen",
		"acme/a\u00ad/x":   "U+00AD, a character that is not seen",
		"acme/\u3164":      "U+3164, a character that is not seen",
		"acme/❤\ufe0f":     "U+FE0F, a variation selector",
		"acme/a\U000e0100": "U+E0100, a variation selector",
		"acme/a\u180b":     "U+180B, a variation selector",
		"acme/a\ufff0":     "U+FFF0, a character that is not seen",
		"acme/a\u2800":     "U+2800, a character that is not seen",
		"acme/a\ufffe":     "U+FFFE, a code point that is no character",
		"acme/\ue000":      "U+E000, a code point for private use",
		"acme/e\u0301":     "use \"acme/\u00e9\"",
	} {
		_, err := r.c.Create(r.root, node.Node{Path: node.Path(path), Content: node.RawContent(`{}`)})
		if bad := wantErr[*node.PathError](t, err); !strings.Contains(bad.Reason, want) {
			t.Errorf("%q: %v", path, err)
		}
		out, err := r.c.Import(r.root, []node.Node{{Path: node.Path(path), Content: node.RawContent(`{}`)}})
		if err != nil {
			t.Fatal(err)
		}
		wantErr[*node.PathError](t, out[0].Err)
		// The control: one that is there already is read, changed and deleted as ever.
		if _, err := r.commit.Submit(r.root, store.Write{Op: store.OpCreate, Node: node.Node{Path: node.Path(path), Version: 1, Content: node.RawContent(`{}`)}}); err != nil {
			t.Fatal(err)
		}
		r.patch(path, `{"name":"x"}`)
		if _, err := r.c.Delete(r.root, node.Path(path), false, nodehub.Condition{}); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{"acme/\u00e9", "acme/日本語", "acme/ünï", "acme/❤", "acme/😀"} {
		r.create(path, "", `{}`)
	}
}

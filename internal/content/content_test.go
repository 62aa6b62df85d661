package content

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// edge §1.1
// CR-4
// CR-7
func TestANamedCollectionWinsAndTheDefaultTakesTheWholeRemainder(t *testing.T) {
	r := newRig(t, nil)
	if err := r.nodes.EnsureCollection(r.admin, "acme", nodehub.Collection{Name: "media", SourceType: "folder", IsStatic: true, IsEditable: true}); err != nil {
		t.Fatal(err)
	}
	r.put("acme", "media", "hello.txt", "from media")
	r.put("acme", "content", "other/x.txt", "deep")
	r.mustRead("acme/hello.txt", "hello")
	r.mustRead("acme/content/hello.txt", "hello")
	r.mustRead("acme/media/hello.txt", "from media")
	r.mustRead("acme/other/x.txt", "deep")
	r.mustRead("acme/doc/page.svg", "<svg/>") // inherited: below the node's own place
	for _, path := range []string{"acme", "acme/doc", "acme/none.txt", "none/x", "acme/content", "acme/media/none.txt", "acme/content/doc"} {
		if _, err := r.read(r.admin, path); !isNotFound(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// CR-8
func TestAnUnpublishedCollectionIsAbsentForEveryCaller(t *testing.T) {
	r := newRig(t, nil)
	if err := r.nodes.EnsureCollection(r.admin, "acme", nodehub.Collection{Name: "private", SourceType: "folder", IsEditable: true}); err != nil {
		t.Fatal(err)
	}
	r.put("acme", "private", "x.txt", "secret")
	if _, err := r.read(r.admin, "acme/private/x.txt"); !isNotFound(err) {
		t.Fatal(err)
	}
}

// CR-5
// CR-9
func TestTheOwnerIsAskedOnEveryReadAndARevocationCountsOnTheNext(t *testing.T) {
	r := newRig(t, nil)
	if err := r.nodes.Grant(r.admin, "acme", "v", "Viewer"); err != nil {
		t.Fatal(err)
	}
	before := r.asked.asked
	for range 3 {
		if _, err := r.read(as("v"), "acme/hello.txt"); err != nil {
			t.Fatal(err)
		}
	}
	if r.asked.asked-before != 3 {
		t.Fatalf("asked %d times for 3 reads", r.asked.asked-before)
	}
	if _, err := r.nodes.Delete(r.admin, "acme/_Access/v_Access", false, nodehub.Condition{}); err != nil {
		t.Fatal(err)
	}
	for name, ctx := range map[string]context.Context{"revoked": as("v"), "stranger": as("x"), "visitor": message.WithIdentity(context.Background(), message.AnonymousIdentity())} {
		if _, err := r.read(ctx, "acme/hello.txt"); !isNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.nodes.Grant(r.admin, "acme", message.SubjectAnonymous, "Viewer"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.read(message.WithIdentity(context.Background(), message.AnonymousIdentity()), "acme/hello.txt"); err != nil {
		t.Fatal("an explicit grant does not let a visitor in:", err)
	}
}

// CR-9
func TestAnOwnersAnswerWithoutTheReadVerdictServesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.content.owners = answers{r.nodes, func(reply *nodehub.CollectionsReply) { reply.MayRead = false }}
	if _, err := r.read(r.admin, "acme/hello.txt"); !isNotFound(err) {
		t.Fatal(err)
	}
}

type answers struct {
	Owners
	change func(*nodehub.CollectionsReply)
}

func (a answers) Collections(ctx context.Context, path node.Path, names ...string) (*nodehub.CollectionsReply, error) {
	reply, err := a.Owners.Collections(ctx, path, names...)
	if err == nil {
		a.change(reply)
	}
	return reply, err
}

// CR-10
func TestEveryFieldOfACollectionSurvivesItsNode(t *testing.T) {
	want := nodehub.Collection{Name: "full", SourceType: "folder", DisplayName: "Full", BasePath: "base", Order: 7, Address: "acme",
		IsStatic: true, IsEditable: true, IsInherited: true, Settings: map[string]string{"a": "b"}}
	v := reflect.ValueOf(want)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("the test does not set %s", v.Type().Field(i).Name)
		}
	}
	r := newRig(t, nil)
	if err := r.nodes.EnsureCollection(r.admin, "acme", want); err != nil {
		t.Fatal(err)
	}
	reply, err := r.nodes.Collections(r.admin, "acme/doc", "full")
	if err != nil || len(reply.Collections) != 1 || !reflect.DeepEqual(reply.Collections[0], want) {
		t.Fatalf("%+v %v", reply, err)
	}
	r.put("acme", "full", "x.txt", "below the base")
	r.mustRead("acme/full/x.txt", "below the base")
}

// CR-3
// fault 41
func TestNothingLeavesTheFolderOfACollection(t *testing.T) {
	r := newRig(t, nil)
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := r.content.root.Name()
	if err := os.Symlink(outside, filepath.Join(root, "acme", "~content", "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(root, "acme", "~content", "dir")); err != nil {
		t.Fatal(err)
	}
	for _, segments := range [][]string{
		{"acme", "link.txt"}, {"acme", "dir", "secret.txt"}, {"acme", "..", "x"}, {"acme", "content", "..", "..", "x"}, {"acme", "a\x00b"},
		{"acme", `a\b`}, {"acme", "a/b"}, {"acme", "."}, {"acme", ""}, {"acme", strings.Repeat("x", 5000)}, {"acme", "\xff"}, {"acme", "..%2f"}, {"%2e%2e", "x"},
	} {
		if f, err := r.content.Read(r.admin, segments); !isNotFound(err) {
			t.Errorf("%q: %v %v", segments, f, err)
		}
	}
	for _, file := range []string{"../x", "a/../../x", "/", "a//b", "..", "a\x00"} {
		if _, _, err := r.content.Put(r.admin, "acme", "content", file, strings.NewReader("x")); err == nil {
			t.Errorf("%q was stored", file)
		}
	}
}

func FuzzADiskPathStaysInItsCollection(f *testing.F) {
	for _, s := range []string{"a", "../a", "a/../b", "..\\a", "~x", "a/./b", "\x00", strings.Repeat("a", 300)} {
		f.Add("acme/x", "content", s)
	}
	f.Fuzz(func(t *testing.T, owner, collection, file string) {
		at, err := node.ParsePath(owner)
		if err != nil {
			return
		}
		p, err := diskPath(at, collection, "", file)
		if err != nil {
			return
		}
		dir, _ := collectionDir(at, collection)
		if p != dir && !strings.HasPrefix(p, dir+"/") || strings.Contains(p, "..") && !filepath.IsLocal(p) {
			t.Fatalf("%q %q %q → %q", owner, collection, file, p)
		}
	})
}

// C-1
// C-2
// DG-1
// DG-8
// edge §1.5
// RB-3
// RB-5
// RB-6
func TestAReadOfANodeThatIsStillStartingSaysSoInsideItsBudgetAndTheNextOneIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[node.Path]time.Duration{"acme": 15 * time.Second})
		defer r.release()
		retire(r, "acme")
		begin := time.Now()
		_, err := r.read(r.admin, "acme/hello.txt")
		took := time.Since(begin)
		var u *Unreachable
		if !errors.As(err, &u) || u.Target != "acme" || u.ReportedBy != budget.ByOwner || took >= 10*time.Second {
			t.Fatalf("after %v: %v", took, err)
		}
		for _, want := range []string{"Reading content collection config from 'acme' gave up after 9.", "STILL STARTING: gate 'Initialize' closed for 9.", "reported_by=owner", "Reader: portal/reads-1 RunLevel=Started"} {
			if !strings.Contains(u.Line, want) {
				t.Errorf("the line lacks %q: %s", want, u.Line)
			}
		}
		if strings.Contains(u.Line, "no hosted hub was observed") {
			t.Error("it says that nothing was observed")
		}
		lines := r.log.lines("Content read timed out for acme/hello.txt")
		if len(lines) != 1 || !strings.Contains(lines[0], "Reading content collection config from") {
			t.Fatalf("%d log records: %v", len(lines), lines)
		}
		if l := r.content.Lapses(); len(l) != 1 || l[0].Line != u.Line {
			t.Fatal("the lapse is not kept for the operator")
		}
		if !u.Timeout() || !errors.As(err, new(*budget.Lapse)) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error("a timeout classifier does not know it")
		}
		<-time.After(15*time.Second - took)
		r.mustRead("acme/hello.txt", "hello")
	})
}

// C-2
func TestARequestThatWaitsLongEnoughIsItselfAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[node.Path]time.Duration{"acme": 15 * time.Second})
		defer r.release()
		retire(r, "acme")
		begin := time.Now()
		if _, err := nodehub.Get.AskWithin(r.admin, r.mesh, "acme", &nodehub.GetRequest{}, budget.Request); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 15*time.Second {
			t.Fatalf("after %v", took)
		}
	})
}

// C-3
// C-4
func TestAWarmNodeIsServedAtOnceAndAnUnresolvablePathNeverPaysTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[node.Path]time.Duration{"acme/doc": 15 * time.Second})
		defer r.release()
		begin := time.Now()
		r.mustRead("acme/hello.txt", "hello")
		for _, path := range []string{"nowhere/x.txt", "acme/none/none.txt"} {
			if _, err := r.read(r.admin, path); !isNotFound(err) {
				t.Fatal(path, err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Fatalf("took %v", took)
		}
	})
}

// C-5
// DG-3
// DG-5
func TestAnActivationThatHasNotPublishedItsHubIsToldOnlyAsNotObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.release()
		r.mustRead("acme/hello.txt", "hello") // the resolution is warm now
		retire(r, "acme")
		release := make(chan struct{})
		r.store.park(func(p node.Path) {
			if p == "acme" {
				<-release
			}
		})
		begin := time.Now()
		_, err := r.read(r.admin, "acme/hello.txt")
		var u *Unreachable
		if !errors.As(err, &u) || u.ReportedBy != budget.ByCaller || time.Since(begin) > 10*time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		if !strings.Contains(u.Line, "no hosted hub was observed in this process at snapshot time, activation=in-flight(") {
			t.Fatal(u.Line)
		}
		for _, forbidden := range []string{"never activated", "absent", "owned elsewhere", "reply lost", "STILL STARTING"} {
			if strings.Contains(u.Line, forbidden) {
				t.Errorf("claims %q: %s", forbidden, u.Line)
			}
		}
		r.store.park(nil)
		close(release)
		r.mustRead("acme/hello.txt", "hello")
	})
}

// CR-4
func TestAResolutionThatHangsIsBoundedByTheReadWithItsOwnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.release()
		release := make(chan struct{})
		r.store.park(func(p node.Path) { <-release })
		begin := time.Now()
		_, err := r.read(r.admin, "acme/hello.txt")
		var u *Unreachable
		if !errors.As(err, &u) || u.Bound != "resolve" || u.ClippedBy != "read" || time.Since(begin) > 10*time.Second {
			t.Fatalf("after %v: %+v", time.Since(begin), err)
		}
		r.store.park(nil)
		close(release)
		r.mustRead("acme/hello.txt", "hello")
	})
}

// B-1
func TestAReadIsNotQueuedBehindANodeOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.release()
		parkedOps, release := make(chan struct{}), make(chan struct{})
		r.service.Operations().Do(func(context.Context, *hub.Hub) { close(parkedOps); <-release })
		<-parkedOps
		r.mustRead("acme/hello.txt", "hello")
		// The control: the same question put through the operations hub shows the signature of B.
		r.content.owners = throughOps{r.nodes, r.service.Operations()}
		r.content.reads = r.service.Operations()
		_, err := r.read(r.admin, "acme/hello.txt")
		var u *Unreachable
		if !errors.As(err, &u) || !strings.Contains(u.Reader, "Executing(hub/execute") || !strings.Contains(u.Reader, "Queue(buffer=1") {
			t.Fatalf("%v", err)
		}
		close(release)
	})
}

// throughOps asks on the turn of the operations hub, as the product does not.
type throughOps struct {
	Owners
	ops *hub.Hub
}

var viaOps = hub.Define[*hub.Work, *hub.None]("test/via-ops", message.Request)

func (o throughOps) Collections(ctx context.Context, path node.Path, names ...string) (reply *nodehub.CollectionsReply, err error) {
	_, err = viaOps.AskFrom(ctx, o.ops, o.ops.Path(), &hub.Work{Run: func(context.Context, *hub.Hub) {}}, budget.Read)
	if err != nil {
		return nil, err
	}
	return o.Owners.Collections(ctx, path, names...)
}

// B-2
func TestTwelveUploadsAtOnceAreIndexedFourAtATimeAndAllOfThem(t *testing.T) {
	r := newRig(t, nil)
	r.content.index.close() // the rig's own uploads are done
	r.content.index.closed = false
	var mu sync.Mutex
	now, peak := 0, 0
	reached, release := make(chan struct{}, 12), make(chan struct{})
	done := make(chan string, 12)
	r.content.index.indexing = func(string) {
		mu.Lock()
		now++
		peak = max(peak, now)
		mu.Unlock()
		reached <- struct{}{}
		<-release
	}
	r.content.index.indexed = func(name string) {
		mu.Lock()
		now--
		mu.Unlock()
		done <- name
	}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() { r.put("acme", "content", "up/"+string(rune('a'+i))+".txt", "x") })
	}
	wg.Wait() // uploads do not wait for their indexing
	for range 4 {
		<-reached
	}
	close(release)
	names := map[string]bool{}
	for range 12 {
		names[<-done] = true
	}
	if len(names) != 12 || peak != 4 {
		t.Fatalf("%d indexed, peak %d", len(names), peak)
	}
}

// C-6
// DG-8
func TestTheDiagnosticLineIsOnePhysicalLine(t *testing.T) {
	got := line(whatConfig, "acme/x\ny", 10*time.Second, "reader\r\nmore", "clause\u2028more")
	if strings.ContainsAny(got, "\n\r\u2028") {
		t.Fatalf("%q", got)
	}
	multi := "Reading " + whatConfig + "\nReader"
	if hub.OneLine(multi) == multi {
		t.Fatal("the guard lets a line break through")
	}
	if strings.Contains(line("node", "x", 0, "", ""), whatConfig) {
		t.Fatal("another kind of read matches the content query")
	}
}

// DG-2
func TestWithoutAReaderTheLineSaysSoAndMakesUpNoZeros(t *testing.T) {
	if got, _ := readerSnapshot(nil); got != "no reader hub" {
		t.Fatal(got)
	}
}

// DG-7
func TestAProbeThatPanicsSaysThatAndNothingElse(t *testing.T) {
	if got, _ := readerSnapshot(&hub.Hub{}); !strings.HasPrefix(got, "<diagnostics unavailable: ") {
		t.Fatal(got)
	}
	if got := (hub.Probe{Failed: "runtime.boundsError"}).Clause(); got != "<diagnostics unavailable: runtime.boundsError>" {
		t.Fatal(got)
	}
}

// CR-6
func TestDuringTeardownAReadIsRefusedAsTransientAndNotSentThroughTheRouter(t *testing.T) {
	r := newRig(t, nil)
	r.service.Reads().Dispose()
	<-r.service.Reads().Done()
	_, err := r.read(r.admin, "acme/hello.txt")
	var f *message.Failure
	if !errors.As(err, &f) || f.Type != message.ShuttingDown {
		t.Fatal(err)
	}
}

// edge §1.2
func TestAPermissionThatCannotBeDecidedIsNotADenial(t *testing.T) {
	r := newRig(t, nil)
	r.content.owners = undecided{r.nodes}
	_, err := r.read(r.admin, "acme/hello.txt")
	if !errors.As(err, new(*access.UndeterminedError)) || isNotFound(err) {
		t.Fatal(err)
	}
}

type undecided struct{ Owners }

func (undecided) Collections(context.Context, node.Path, ...string) (*nodehub.CollectionsReply, error) {
	return nil, &access.UndeterminedError{Path: "acme"}
}

// fault 45
func TestTheFactsOfALapseAreTheFactsOfItsLine(t *testing.T) {
	u := &Unreachable{Lapse: Lapse{Target: "acme", Bound: "defer", ClippedBy: "read", ReportedBy: "owner", Clause: "c", Line: "l"}}
	text, err := json.Marshal(u.ProblemMembers())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"target":"acme"`, `"bound":"defer"`, `"clipped_by":"read"`, `"reported_by":"owner"`, `"line":"l"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("lacks %s: %s", want, text)
		}
	}
}

// retire takes an idle hub out, so that the next read has to start it.
func retire(r *rig, path string) {
	r.t.Helper()
	if h := r.mesh.Find(path); h != nil {
		h.Dispose()
		<-h.Done()
	}
}

// CR-11
func TestFilesAreOpenedOnABoundedPoolAndAFullPoolIsWaitedForWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.release()
		for range cap(r.content.open) {
			r.content.open <- struct{}{}
		}
		begin := time.Now()
		_, err := r.read(r.admin, "acme/hello.txt")
		var u *Unreachable
		if !errors.As(err, &u) || time.Since(begin) > 10*time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		<-r.content.open
		r.mustRead("acme/hello.txt", "hello")
	})
}

// DG-4
// DG-6
func TestEachClauseSaysOnlyWhatWasObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[node.Path]time.Duration{"acme/doc": time.Minute})
		defer r.release()
		probe := func(path string) string { return r.mesh.Probe(path, r.service.Reads()).Clause() }
		if got := probe("acme/none"); !strings.HasPrefix(got, "no hosted hub was observed in this process at snapshot time, activation=none-recorded") {
			t.Error(got)
		}
		if r.mesh.Find("acme/none") != nil {
			t.Error("a probe started a hub")
		}
		r.mustRead("acme/hello.txt", "hello")
		if got := probe("acme"); !strings.HasPrefix(got, "Started acme RunLevel=Started") {
			t.Error(got)
		}
		if got := probe(r.service.Reads().Path()); got != "this hub itself" {
			t.Error(got)
		}
		// It ends with the hub; a client would ask the next one and start it.
		go nodehub.Get.AskWithin(r.admin, r.mesh, "acme/doc", &nodehub.GetRequest{}, budget.Request) //nolint:errcheck // it only starts the hub
		synctest.Wait()
		got := probe("acme/doc")
		if !strings.HasPrefix(got, "STILL STARTING: gate 'Initialize' closed for") || !strings.Contains(got, "deferred=1") {
			t.Error(got)
		}
		h := r.mesh.Find("acme/doc")
		h.OnFlush(func(context.Context) {
			if got := probe("acme/doc"); !strings.HasPrefix(got, "SHUTTING DOWN acme/doc RunLevel=ShutDown") {
				t.Error(got)
			}
		})
		h.Dispose()
		<-h.Done()
		if got := probe("acme/doc"); strings.Contains(got, "deferred=1") {
			t.Error("it claims that a request is deferred which has been answered: " + got)
		}
	})
}

// RB-4
// RB-2
func TestTheReadBudgetBoundsTheAnswerAndNotTheStreamOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.release()
		f, err := r.content.Read(r.admin, []string{"acme", "hello.txt"})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		<-time.After(time.Minute) // a slow client: the budget was for the verdict
		if b, err := io.ReadAll(f); err != nil || string(b) != "hello" {
			t.Fatalf("%q %v", b, err)
		}
		begin := time.Now()
		if _, _, err := r.content.Put(r.admin, "acme", "content", "slow.txt", slowly{}); err != nil || time.Since(begin) < 20*time.Second {
			t.Fatalf("a write was cut by the read budget after %v: %v", time.Since(begin), err)
		}
	})
}

// slowly is an upload that takes 20 s.
type slowly struct{}

func (slowly) Read([]byte) (int, error) {
	<-time.After(20 * time.Second)
	return 0, io.EOF
}

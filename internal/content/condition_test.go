package content

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// putIf stores a file of acme if a condition holds.
func (r *rig) putIf(file, text string, when Condition) (Stored, error) {
	return r.content.PutIf(r.admin, "acme", "content", file, strings.NewReader(text), when)
}

// tag is the entity tag that a read of a file of acme gives.
func (r *rig) tag(file string) string {
	r.t.Helper()
	f, err := r.content.Read(r.admin, strings.Split("acme/content/"+file, "/"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	return f.ETag
}

func unmet(err error) bool { return errors.As(err, new(*ConditionError)) }

// RFC 9110 §13.1
func TestAChangeOfAFileCanDependOnTheOneThatIsThere(t *testing.T) {
	r := newRig(t, nil)
	large := strings.Repeat("x", BufferLimit)
	const other = `"b3RoZXI="`
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		there string // what is there before; "" for no file
		when  func(tag string) Condition
		holds bool
	}{
		"its tag":                        {"a", func(tag string) Condition { return Condition{Match: []string{tag}} }, true},
		"one of several tags":            {"a", func(tag string) Condition { return Condition{Match: []string{other, tag}} }, true},
		"another tag":                    {"a", func(string) Condition { return Condition{Match: []string{other}} }, false},
		"a weak tag":                     {"a", func(tag string) Condition { return Condition{Match: []string{"W/" + tag}} }, false},
		"any file":                       {"a", func(string) Condition { return Condition{Match: []string{"*"}} }, true},
		"any file, of none":              {"", func(string) Condition { return Condition{Match: []string{"*"}} }, false},
		"a tag, of none":                 {"", func(string) Condition { return Condition{Match: []string{other}} }, false},
		"no file":                        {"a", func(string) Condition { return Condition{NoneMatch: []string{"*"}} }, false},
		"no file, of none":               {"", func(string) Condition { return Condition{NoneMatch: []string{"*"}} }, true},
		"not this tag":                   {"a", func(tag string) Condition { return Condition{NoneMatch: []string{other, tag}} }, false},
		"not this tag, weakly":           {"a", func(tag string) Condition { return Condition{NoneMatch: []string{"W/" + tag}} }, false},
		"not another tag":                {"a", func(string) Condition { return Condition{NoneMatch: []string{other}} }, true},
		"not a tag, of none":             {"", func(string) Condition { return Condition{NoneMatch: []string{other}} }, true},
		"both, and one does not hold":    {"a", func(tag string) Condition { return Condition{Match: []string{tag}, NoneMatch: []string{"*"}} }, false},
		"unchanged":                      {"a", func(string) Condition { return Condition{Unchanged: future} }, true},
		"changed since":                  {"a", func(string) Condition { return Condition{Unchanged: past} }, false},
		"changed, of none":               {"", func(string) Condition { return Condition{Unchanged: past} }, true},
		"changed, which a match forgoes": {"a", func(tag string) Condition { return Condition{Match: []string{tag}, Unchanged: past} }, true},
		"a tag, of a large file":         {large, func(string) Condition { return Condition{Match: []string{other}} }, false},
		"any file, of a large file":      {large, func(string) Condition { return Condition{Match: []string{"*"}} }, true},
		"no condition":                   {"a", func(string) Condition { return Condition{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range []string{"put", "delete"} {
				file, tag := path.Join(way, strings.ReplaceAll(name, " ", "-")), ""
				if c.there != "" {
					stored, err := r.putIf(file, c.there, Condition{NoneMatch: []string{"*"}})
					if err != nil || !stored.Created || stored.Size != int64(len(c.there)) || stored.ETag != r.tag(file) {
						t.Fatalf("%+v %v", stored, err)
					}
					tag = stored.ETag
				}
				var err error
				if way == "put" {
					_, err = r.putIf(file, "new", c.when(tag))
				} else {
					err = r.content.DeleteIf(r.admin, "acme", "content", file, c.when(tag))
					if c.there == "" && c.holds && isNotFound(err) {
						err = nil
					}
				}
				if unmet(err) == c.holds || err != nil && !unmet(err) {
					t.Errorf("%s: %v", way, err)
				}
				want := c.there
				if c.holds && way == "put" {
					want = "new"
				}
				got, err := r.read(r.admin, "acme/content/"+file)
				if gone := want == "" || c.holds && way == "delete"; gone != isNotFound(err) || !gone && got != want {
					t.Errorf("%s: there is %.20q, %v", way, got, err)
				}
			}
		})
	}
}

// RFC 9110 §13.1
// The bytes of an upload that is refused are not taken, and no collection is made for it.
func TestAConditionThatDoesNotHoldIsToldBeforeTheBytesAreTaken(t *testing.T) {
	r := newRig(t, nil)
	taken := func() io.Reader {
		return readerFunc(func([]byte) (int, error) { t.Error("bytes were taken"); return 0, io.EOF })
	}
	if _, err := r.content.PutIf(r.admin, "acme", "content", "hello.txt", taken(), Condition{NoneMatch: []string{"*"}}); !unmet(err) {
		t.Error(err)
	}
	if _, err := r.nodes.Create(r.admin, node.Node{Path: "bare", NodeType: node.TypeSpace, Content: node.RawContent("{}")}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.content.PutIf(r.admin, "bare", "content", "a.txt", taken(), Condition{Match: []string{"*"}}); !unmet(err) {
		t.Error(err)
	}
	if _, err := r.nodes.Get(r.admin, "bare/_Content/content"); err == nil {
		t.Error("a collection was made")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// RFC 9110 §13.1
// Between the look at a condition and the change no other one comes: the race is made by a second writer at that
// moment, of the same process or of another one on the same folder.
func TestASecondWriterAfterTheLookAtAConditionIsSeen(t *testing.T) {
	tagOf := func(r *rig, s *Service) string {
		stored, err := s.PutIf(r.admin, "acme", "content", "f.txt", strings.NewReader("first"), Condition{})
		if err != nil {
			r.t.Fatal(err)
		}
		return stored.ETag
	}
	put := func(r *rig, s *Service, text string) {
		if _, _, err := s.Put(r.admin, "acme", "content", "f.txt", strings.NewReader(text)); err != nil {
			r.t.Error(err)
		}
	}
	for _, shared := range []bool{false, true} {
		for name, c := range map[string]struct {
			second func(r *rig, s *Service)
			when   func(tag string) Condition
			del    bool
			want   string // what is there afterwards
			holds  bool
		}{
			"a replacement beside a replacement": {func(r *rig, s *Service) { put(r, s, "second") }, func(tag string) Condition { return Condition{Match: []string{tag}} }, false, "second", false},
			"a replacement beside a deletion":    {func(r *rig, s *Service) { put(r, s, "second") }, func(tag string) Condition { return Condition{Match: []string{tag}} }, true, "second", false},
			"a deletion beside a replacement": {func(r *rig, s *Service) {
				if err := s.Delete(r.admin, "acme", "content", "f.txt"); err != nil {
					r.t.Error(err)
				}
			}, func(tag string) Condition { return Condition{Match: []string{tag}} }, false, "", false},
			"a deletion and an upload of the same bytes":  {func(r *rig, s *Service) { _ = s.Delete(r.admin, "acme", "content", "f.txt"); put(r, s, "first") }, func(tag string) Condition { return Condition{Match: []string{tag}} }, false, "mine", true},
			"the same bytes, which have the tag":          {func(r *rig, s *Service) { put(r, s, "first") }, func(tag string) Condition { return Condition{Match: []string{tag}} }, false, "mine", true},
			"another file, which is any":                  {func(r *rig, s *Service) { put(r, s, "second") }, func(string) Condition { return Condition{Match: []string{"*"}} }, false, "mine", true},
			"nobody: the control":                         {func(*rig, *Service) {}, func(tag string) Condition { return Condition{Match: []string{tag}} }, false, "mine", true},
			"a replacement without a condition: no check": {func(r *rig, s *Service) { r.t.Error("it was looked at") }, func(string) Condition { return Condition{} }, false, "mine", true},
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, nil)
				one, two := r.content, r.content
				if shared {
					one, two = r.share(t)
				}
				tag := tagOf(r, one)
				looks := 0
				one.checked = func() {
					if looks++; looks == 2 || c.del && looks == 1 { // an upload is asked before its bytes are taken, too
						c.second(r, two)
					}
				}
				if two == one {
					check := one.checked
					one.checked = func() { one.checked = nil; check(); one.checked = check }
				}
				var err error
				if c.del {
					err = one.DeleteIf(r.admin, "acme", "content", "f.txt", c.when(tag))
				} else {
					_, err = one.PutIf(r.admin, "acme", "content", "f.txt", strings.NewReader("mine"), c.when(tag))
				}
				if unmet(err) == c.holds || err != nil && !unmet(err) {
					t.Errorf("%v", err)
				}
				var got string
				f, err := two.Read(r.admin, []string{"acme", "content", "f.txt"})
				if err == nil {
					b, _ := io.ReadAll(f)
					f.Close()
					got = string(b)
				}
				if got != c.want {
					t.Errorf("there is %q, want %q (%v)", got, c.want, err)
				}
				if left := stored(one.root, uploadsDir); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

// share makes two services, as of two processes, on one folder.
func (r *rig) share(t *testing.T) (one, two *Service) {
	dir := t.TempDir()
	open := func() *Service {
		s, err := New(Options{Mesh: r.mesh, Resolver: r.resolver, Owners: r.asked, Permissions: r.nodes, Reads: r.service.Reads(), Dir: dir, Shared: true})
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
	return open(), open()
}

func stored(root *os.Root, dir string) (names []string) {
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ = f.Readdirnames(-1)
	return names
}

// RFC 9110 §13.1
// The race is made inside of a turn: another process that comes then waits for its end, and sees what it did.
func TestAnotherProcessDoesNotComeBetweenTheLastLookAndTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.release()
		one, two := r.share(t)
		put := func(s *Service, text, tag string) error {
			_, err := s.PutIf(r.admin, "acme", "content", "f.txt", strings.NewReader(text), Condition{Match: []string{tag}})
			return err
		}
		for name, second := range map[string]func(tag string) error{
			"a condition": func(tag string) error { return put(two, "second", tag) },
			"a deletion": func(tag string) error {
				return two.DeleteIf(r.admin, "acme", "content", "f.txt", Condition{Match: []string{tag}})
			},
		} {
			first, err := one.PutIf(r.admin, "acme", "content", "f.txt", strings.NewReader("first of "+name), Condition{})
			if err != nil {
				t.Fatal(err)
			}
			var work sync.WaitGroup
			var other error
			ins := 0
			one.changing = func() {
				if ins++; ins != 2 { // the first one is the look before the bytes
					return
				}
				work.Go(func() { other = second(first.ETag) })
				<-time.After(time.Second) // as long as there is something that the other one can do
			}
			err = put(one, "mine", first.ETag)
			work.Wait()
			if err != nil || !unmet(other) {
				t.Errorf("%s: %v, and of the other one %v", name, err, other)
			}
		}
	})
}

// RFC 9110 §13.1
func TestOneOfManyWritersWithTheSameTagWins(t *testing.T) {
	r := newRig(t, nil)
	one, two := r.share(t)
	first, err := one.PutIf(r.admin, "acme", "content", "f.txt", strings.NewReader("first"), Condition{})
	if err != nil {
		t.Fatal(err)
	}
	const writers = 24
	results := make([]error, writers)
	var work sync.WaitGroup
	for i := range writers {
		work.Go(func() {
			s := []*Service{one, two}[i%2]
			_, results[i] = s.PutIf(r.admin, "acme", "content", "f.txt", strings.NewReader("by "+string(rune('a'+i))), Condition{Match: []string{first.ETag}})
		})
	}
	work.Wait()
	won := -1
	for i, err := range results {
		switch {
		case err == nil && won >= 0:
			t.Errorf("%d and %d won", won, i)
		case err == nil:
			won = i
		case !unmet(err):
			t.Error(err)
		}
	}
	f, err := one.Read(r.admin, []string{"acme", "content", "f.txt"})
	if err != nil || won < 0 {
		t.Fatal(err, won)
	}
	defer f.Close()
	if b, _ := io.ReadAll(f); string(b) != "by "+string(rune('a'+won)) {
		t.Errorf("%q, and %d won", b, won)
	}
}

func TestATurnIsOneOfAllProcessesAndIsNotWaitedForForEver(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	synctest.Test(t, func(t *testing.T) {
		one, err := newTurns(root, true)
		two, err2 := newTurns(root, true)
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		var log []string
		err = one.take(func() error {
			var done sync.WaitGroup
			done.Go(func() {
				begin := time.Now()
				err := two.take(func() error { log = append(log, "in another's turn"); return nil })
				if !errors.As(err, new(*BusyError)) || time.Since(begin) != lockWait {
					t.Errorf("%v after %v", err, time.Since(begin))
				}
			})
			done.Go(func() {
				if err := one.take(func() error { log = append(log, "in one's own turn"); return nil }); !errors.As(err, new(*BusyError)) {
					t.Error(err)
				}
			})
			done.Wait()
			return nil
		})
		if err != nil || len(log) > 0 {
			t.Errorf("%v %v", err, log)
		}
		// The control: afterwards there is a turn for each.
		for _, turns := range []*turns{two, one} {
			if err := turns.take(func() error { log = append(log, "a turn"); return nil }); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(log, []string{"a turn", "a turn"}) {
			t.Error(log)
		}
		if err := errors.Join(one.close(), two.close()); err != nil {
			t.Error(err)
		}
	})
}

// data §1.4
func TestAnUploadWithAConditionIsOvertakenByTheDeletionOfItsNode(t *testing.T) {
	r := newRig(t, nil)
	r.put("acme/doc", "content", "a.txt", "a")
	f, err := r.content.Read(r.admin, []string{"acme", "doc", "content", "a.txt"})
	if err != nil {
		t.Fatal(err)
	}
	tag := f.ETag
	f.Close()
	looks := 0
	r.content.checked = func() {
		if looks++; looks == 2 {
			if _, err := r.nodes.Delete(context.WithoutCancel(r.admin), "acme/doc", true, nodehub.Condition{}); err != nil {
				t.Error(err)
			}
		}
	}
	_, err = r.content.PutIf(r.admin, "acme/doc", "content", "a.txt", strings.NewReader("b"), Condition{Match: []string{tag}})
	if !isNotFound(err) && !unmet(err) {
		t.Error(err)
	}
	if looks < 2 {
		t.Errorf("%d looks", looks)
	}
}

package hubmesh_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/hubmesh/hubmesh"
)

// standing is a source of an import that stands at one of its files until it is let go.
type standing struct {
	fstest.MapFS
	at     string
	here   chan struct{}
	let    chan struct{}
	onlyOf sync.Once
}

func (s *standing) Open(name string) (fs.File, error) {
	if name == s.at {
		s.onlyOf.Do(func() { close(s.here) })
		<-s.let
	}
	return s.MapFS.Open(name)
}

// issue 4: what other processes do outlives the start of a process
func TestAStartOfAProcessEndsNoUploadAndNoImportOfAnother(t *testing.T) {
	_, url := database(t)
	dir := t.TempDir()
	begin := func() *hubmesh.Mesh {
		m, err := hubmesh.New(hubmesh.Options{Postgres: url, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
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
	a := begin()
	file := filepath.Join(dir, "token")
	if _, err := a.AdminToken(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	admin := hubmesh.As(t.Context(), "admin")
	if _, err := a.Create(admin, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}

	// An import by a stands at its second file, an upload by a has written half of its bytes.
	src := &standing{at: "b.json", here: make(chan struct{}), let: make(chan struct{}), MapFS: fstest.MapFS{
		"a.json": {Data: []byte(`{"name":"A","content":{}}`)}, "b.json": {Data: []byte(`{"name":"B","content":{}}`)}}}
	activity, err := a.ImportFS(admin, "test", src, "acme", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-src.here
	body, feed := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, listenAndServe(t, a)+"/api/files/acme/content/slow.txt", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	uploaded := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			text, _ := io.ReadAll(resp.Body)
			if resp.Body.Close(); resp.StatusCode != http.StatusCreated {
				err = errors.New(resp.Status + " " + string(text))
			}
		}
		uploaded <- err
	}()
	if _, err := io.WriteString(feed, "first, "); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the upload to be written", func() error {
		found, err := filepath.Glob(filepath.Join(dir, "content", "~uploads", "*"))
		if err == nil && len(found) == 0 {
			err = errors.New("no file")
		}
		return err
	})

	b := begin() // and what it settles, it has settled
	if n, err := b.Get(admin, activity); err != nil || !strings.Contains(n.Content.Text(), `"Running"`) {
		t.Errorf("the import by the first process: %s %v", n.Content.Text(), err)
	}
	if _, err := io.WriteString(feed, "then"); err != nil {
		t.Fatal(err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-uploaded; err != nil {
		t.Errorf("the upload by the first process: %v", err)
	}
	if text, err := os.ReadFile(found(t, dir, "slow.txt")); err != nil || string(text) != "first, then" {
		t.Errorf("%q %v", text, err)
	}
	// The control: a start that takes itself for alone. The first process may still have had progress to write.
	eventually(t, "the control to show the fault", func() error {
		if err := b.EndWork(t.Context(), 0); err != nil {
			return err
		}
		n, err := b.Get(admin, activity)
		if err == nil && !strings.Contains(n.Content.Text(), `"Failed"`) {
			err = errors.New(n.Content.Text())
		}
		return err
	})
	close(src.let)
	http.DefaultClient.CloseIdleConnections()
}

// found is where a file lies below a folder.
func found(t *testing.T, dir, name string) (at string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name {
			at = p
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// The test binary runs itself as another process where a test needs one: the first word of this
// variable says what for, the second is the database.
const childVariable = "HUBMESH_SQLITE_CHILD"

func TestMain(m *testing.M) {
	role, file, _ := strings.Cut(os.Getenv(childVariable), " ")
	switch role {
	case "":
		goleak.VerifyTestMain(m)
	case "open":
		s, err := sqlite.Open(context.Background(), sqlite.Options{File: file, Log: quiet()})
		if err == nil {
			err = s.Close()
		}
		fmt.Println(describe(err))
	case "write":
		writeUntilKilled(file)
	}
}

// describe tells the kind of an error from its process to another.
func describe(err error) string {
	var u *store.UnavailableError
	if errors.As(err, &u) {
		return fmt.Sprintf("unavailable kind %d: %v", u.Kind, err)
	}
	return fmt.Sprint(err)
}

func create(path string, version int64) store.Write {
	p := node.Path(path)
	content := node.RawContent(fmt.Sprintf(`{"text":%q,"version":%d}`, strings.Repeat("x", 560), version))
	return store.Write{Op: store.OpCreate, Node: node.Node{Path: p, MainNode: p.Main(), Name: p.ID(), NodeType: "Task", Content: content, Version: version}}
}

func update(path string, version int64) store.Write {
	w := create(path, version)
	w.Op, w.Expected = store.OpUpdate, version-1
	return w
}

func provision(t testing.TB, s store.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := s.EnsurePartition(t.Context(), name, "system"); err != nil {
			t.Fatal(err)
		}
	}
}

func commit(t testing.TB, s store.Store, batch ...store.Write) {
	t.Helper()
	results, err := s.Commit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// kind checks that err is an UnavailableError of the kind, with a hint.
func kind(t testing.TB, err error, want store.UnavailableKind, words ...string) {
	t.Helper()
	var u *store.UnavailableError
	if !errors.As(err, &u) || u.Kind != want || u.Hint == "" || u.Op == "" {
		t.Errorf("got %v (%+v); want kind %d", err, u, want)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the message lacks %q: %v", word, err)
		}
	}
}

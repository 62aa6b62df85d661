package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

func tryOpen(t *testing.T, file string) error {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{File: file, Log: quiet()})
	if err == nil {
		_ = s.Close()
	}
	return err
}

func TestEverythingIsThereAfterReopening(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a folder with % ? # in its name", "mesh.db")
	first := open(t, sqlite.Options{File: file})
	provision(t, first, "acme", "going")
	commit(t, first, create("acme/x", 1), create("acme/y", 1))
	commit(t, first, update("acme/x", 2), store.Write{Op: store.OpDelete, Node: create("acme/y", 2).Node, Expected: 1})
	if err := first.MarkPartition(t.Context(), "going", true); err != nil {
		t.Fatal(err)
	}
	if err := first.Blobs().Put(t.Context(), "b", "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*-wal")); err != nil || len(left) != 0 {
		t.Errorf("a log is left: %v, %v", left, err)
	}

	s := open(t, sqlite.Options{File: file})
	if n, err := s.Read(t.Context(), "acme/x"); err != nil || n.Version != 2 {
		t.Errorf("%+v, %v", n, err)
	}
	if infos, err := s.Versions(t.Context(), "acme/x", store.VersionPage{}); err != nil || len(infos) != 2 {
		t.Errorf("%v, %v", infos, err)
	}
	if _, err := s.Read(t.Context(), "acme/y"); err == nil || err.(*store.NotFoundError).LastVersion != 2 {
		t.Errorf("the tombstone: %v", err)
	}
	if all, err := s.Partitions(t.Context()); err != nil || len(all) != 2 || !all[1].Deleting || all[0].CreatedBy != "system" {
		t.Errorf("%+v, %v", all, err)
	}
	if v, err := s.Blobs().Get(t.Context(), "b", "k"); err != nil || string(v) != "v" {
		t.Errorf("%q, %v", v, err)
	}
}

// issue: a locked database file
func TestASecondStoreOnOneFileIsRefusedUntilTheFirstIsClosed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mesh.db")
	first := open(t, sqlite.Options{File: file})
	kind(t, tryOpen(t, file), store.UnavailableLocked, fmt.Sprint("process ", os.Getpid()), file)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tryOpen(t, file); err != nil {
		t.Error(err)
	}
}

// issue: a corrupt database file
// A database that lost everything is not taken for a new one, also where its log still has something. One whose first
// start ended before it had tables is.
func TestAnEmptyFileIsNoNewDatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mesh.db")
	first := open(t, sqlite.Options{File: file})
	provision(t, first, "acme")
	commit(t, first, create("acme/x", 1))
	if _, err := os.Stat(file + ".new"); err == nil {
		t.Error("the mark of a new database stays")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	log := []byte("what was written last")
	for _, with := range []bool{false, true} {
		if with {
			if err := os.WriteFile(file+"-wal", log, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kind(t, tryOpen(t, file), store.UnavailableCorrupt, "the file is empty", "restore a backup")
	}
	if got, err := os.ReadFile(file + "-wal"); err != nil || !bytes.Equal(got, log) {
		t.Errorf("the log: %q, %v", got, err)
	}
	// The control: a first start that ended at once.
	young := filepath.Join(t.TempDir(), "young.db")
	for _, name := range []string{young, young + ".new"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := tryOpen(t, young); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(young, 0); err != nil {
		t.Fatal(err)
	}
	kind(t, tryOpen(t, young), store.UnavailableCorrupt, "the file is empty")
}

// issue: a corrupt database file
func TestAFileThatIsNoDatabaseOfOursIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	foreign := func(file string) {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "create table their_table (x)"); err != nil {
			t.Fatal(err)
		}
	}
	for name, make := range map[string]func(file string){
		"text":  func(file string) { write(t, file, []byte("this is a text and not a database, whatever its name says")) },
		"short": func(file string) { write(t, file, []byte("SQLite")) },
		"header only": func(file string) {
			write(t, file, append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte{0xff}, 5000)...))
		},
		"another program's": foreign,
	} {
		file := filepath.Join(t.TempDir(), "mesh.db")
		make(file)
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			kind(t, tryOpen(t, file), store.UnavailableCorrupt, file)
			if after, err := os.ReadFile(file); err != nil || name != "another program's" && !bytes.Equal(before, after) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamageInsideTheFileIsReportedAndNeverReadAsData(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mesh.db")
	s := open(t, sqlite.Options{File: file})
	provision(t, s, "acme")
	for i := range 20 {
		var batch []store.Write
		for j := range 50 {
			batch = append(batch, create(fmt.Sprintf("acme/%d/%d", i, j), 1))
		}
		commit(t, s, batch...)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatalf("the check of a sound file: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for at := 20 * page; at+page <= len(whole); at += page { // behind the schema and the top of the trees
		copy(whole[at:at+100], bytes.Repeat([]byte{0x5a}, 100))
	}
	write(t, file, whole)

	s = open(t, sqlite.Options{File: file})
	kind(t, s.Check(t.Context()), store.UnavailableCorrupt)
	failed := 0
	for i := range 20 {
		for j := range 50 {
			path := create(fmt.Sprintf("acme/%d/%d", i, j), 1).Node
			n, err := s.Read(t.Context(), path.Path)
			switch {
			case err != nil:
				failed++
				kind(t, err, store.UnavailableCorrupt)
			case n.Content != path.Content:
				t.Fatalf("%s is read wrongly", path.Path)
			}
		}
	}
	if failed == 0 {
		t.Error("no read met the damage")
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mesh.db")
	s := open(t, sqlite.Options{File: file})
	next := fstest.MapFS{
		"migrations/0001_nodes.sql": {Data: []byte("select 1")},
		"migrations/0002_more.sql":  {Data: []byte("create table more (x)")},
	}
	if err := s.MigrateWith(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if err := s.MigrateWith(t.Context(), next); err != nil {
		t.Fatalf("again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kind(t, tryOpen(t, file), store.UnavailableNewer, "schema is 2", "knows 1")
}

func TestAMigrationThatFailsLeavesTheSchemaAsItWas(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mesh.db")
	s := open(t, sqlite.Options{File: file})
	broken := fstest.MapFS{
		"migrations/0001_nodes.sql":  {Data: []byte("select 1")},
		"migrations/0002_half.sql":   {Data: []byte("create table half (x); insert into nowhere values (1)")},
		"migrations/0003_unused.sql": {Data: []byte("select 1")},
	}
	if err := s.MigrateWith(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "migration 2 (half)") {
		t.Fatalf("got %v", err)
	}
	provision(t, s, "acme")
	commit(t, s, create("acme/x", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tryOpen(t, file); err != nil {
		t.Error(err)
	}
	gap := fstest.MapFS{"migrations/0002_gap.sql": {Data: []byte("select 1")}}
	s = open(t, sqlite.Options{File: file})
	if err := s.MigrateWith(t.Context(), gap); err == nil {
		t.Error("a gap in the numbers is accepted")
	}
}

func TestAFolderOrFileWithoutPermissionIsRefused(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "hubmesh-permission")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "program")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o755); err != nil { //nolint:gosec // somebody else runs it
		t.Fatal(err)
	}
	sealed := filepath.Join(dir, "sealed")
	readOnly := filepath.Join(dir, "open", "mesh.db")
	for _, d := range []string{sealed, filepath.Dir(readOnly)} {
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // somebody else looks into it
			t.Fatal(err)
		}
	}
	s := open(t, sqlite.Options{File: readOnly})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, sealed: 0o555, readOnly: 0o444} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]string{
		"a folder that may not be written": filepath.Join(sealed, "mesh.db"),
		"a folder that cannot be made":     filepath.Join(sealed, "below", "mesh.db"),
		"a file that may not be written":   readOnly,
	} {
		child := exec.CommandContext(t.Context(), program)
		child.Env = append(os.Environ(), childVariable+"=open "+file)
		asNobody(child)
		out, err := child.CombinedOutput()
		if want := fmt.Sprintf("unavailable kind %d", store.UnavailablePermission); err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "needs to read and write") {
			t.Errorf("%s: %s (%v)", name, out, err)
		}
	}
	_ = os.Chmod(sealed, 0o755) //nolint:gosec // so that it can be removed
}

func TestAPathThatCannotBeAFolderIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	kind(t, tryOpen(t, filepath.Join(file, "mesh.db")), store.UnavailableOther, "another data folder")
	kind(t, tryOpen(t, ""), store.UnavailableOther)
}

func TestOnlyTheOwnerCanReadTheFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new", "mesh.db")
	s := open(t, sqlite.Options{File: file})
	provision(t, s, "acme")
	for _, name := range []string{file, file + "-wal", file + "-shm", file + ".lock", filepath.Dir(file)} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

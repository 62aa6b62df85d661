package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// killRounds is the number of kills in the usual test run; this variable asks for more.
const (
	killRounds         = 3
	killRoundsVariable = "HUBMESH_KILL_ROUNDS"
	killWriters        = 16
)

// writeUntilKilled writes nodes through a committer, and says each acknowledged write on its output:
// "path version", or "path version deleted". Each node is created, changed, deleted now and then, and
// created again; where it goes on is read from the store, as an owner would after a restart.
func writeUntilKilled(file string) {
	ctx := context.Background()
	fail := func(err error) {
		fmt.Println("error", err)
		os.Exit(1)
	}
	s, err := sqlite.Open(ctx, sqlite.Options{File: file, Log: quiet()})
	if err != nil {
		fail(err)
	}
	if err := s.EnsurePartition(ctx, "acme", ""); err != nil {
		fail(err)
	}
	c := store.NewCommitter(s, store.CommitterOptions{})
	var output sync.Mutex
	var writers sync.WaitGroup
	for i := range killWriters {
		writers.Go(func() {
			path := fmt.Sprintf("acme/node %d", i)
			n, err := s.Read(ctx, node.Path(path))
			version, exists := n.Version, err == nil
			if missing := (*store.NotFoundError)(nil); errors.As(err, &missing) {
				version = missing.LastVersion
			}
			for {
				version++
				w, suffix := update(path, version), ""
				switch {
				case !exists:
					w.Op = store.OpCreate
				case version%50 == 0:
					w.Op, suffix = store.OpDelete, " deleted"
				}
				exists = w.Op != store.OpDelete
				if _, err := c.Submit(ctx, w); err != nil {
					fail(err)
				}
				output.Lock()
				fmt.Printf("%s %d%s\n", strings.ReplaceAll(path, " ", "_"), version, suffix)
				output.Unlock()
			}
		})
	}
	writers.Wait()
}

// issue: a process killed during writes; faults.md; storage.md §7
func TestAKilledProcessLosesNoAcknowledgedWriteAndLeavesNoGap(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	rounds := killRounds
	if text := os.Getenv(killRoundsVariable); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "mesh.db")
	acknowledged := map[string]int64{}
	deleted := map[string]bool{}
	total := 0
	for round := range rounds {
		total += killOnce(t, file, 100+round*97%400, acknowledged, deleted)
		verify(t, file, acknowledged, deleted)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d acknowledged writes survived %d kills", total, rounds)
}

// killOnce runs a writing process, kills it after some acknowledged writes, and takes note of all of
// them.
func killOnce(t *testing.T, file string, after int, acknowledged map[string]int64, deleted map[string]bool) (count int) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=write "+file)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n') // what stands in the pipe outlives its writer
		if errors.Is(err, io.EOF) {
			break
		}
		fields := strings.Fields(line)
		if err != nil || len(fields) < 2 || fields[0] == "error" {
			t.Fatalf("the writer said %q (%v)", line, err)
		}
		path := strings.ReplaceAll(fields[0], "_", " ")
		version, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		acknowledged[path], deleted[path] = version, len(fields) == 3
		if count++; count == after {
			if _, err := sqlite.Open(t.Context(), sqlite.Options{File: file, Log: quiet()}); err == nil {
				t.Error("a second process opens the database")
			} else {
				kind(t, err, store.UnavailableLocked, strconv.Itoa(child.Process.Pid))
			}
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	return count
}

// verify checks that every acknowledged write is there and that the versions of each node have no gap.
func verify(t *testing.T, file string, acknowledged map[string]int64, deleted map[string]bool) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{File: file, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for path, last := range acknowledged {
		infos, err := s.Versions(t.Context(), node.Path(path), store.VersionPage{Limit: store.MaxTrail})
		if err != nil {
			t.Fatal(err)
		}
		// One more write may have been committed and not been acknowledged.
		if len(infos) == 0 || infos[0].Version < last || infos[0].Version > last+1 {
			t.Errorf("%s: version %d was acknowledged, the history begins with %+v", path, last, infos[:min(1, len(infos))])
			continue
		}
		for i := range infos[:len(infos)-1] {
			if infos[i].Version != infos[i+1].Version+1 {
				t.Errorf("%s: version %d follows %d", path, infos[i].Version, infos[i+1].Version)
			}
		}
		if len(infos) < store.MaxTrail && infos[len(infos)-1].Version != 1 {
			t.Errorf("%s: the history ends with version %d", path, infos[len(infos)-1].Version)
		}
		n, err := s.Read(t.Context(), node.Path(path))
		var missing *store.NotFoundError
		switch {
		case errors.As(err, &missing):
			if missing.LastVersion != infos[0].Version || infos[0].Kind != store.Deleted {
				t.Errorf("%s: deleted at %d, the history begins with %+v", path, missing.LastVersion, infos[0])
			}
		case err != nil:
			t.Fatal(err)
		case n.Version != infos[0].Version || n.Version == last && deleted[path]:
			t.Errorf("%s: version %d is stored, %d (deleted: %v) was acknowledged", path, n.Version, last, deleted[path])
		}
	}
}

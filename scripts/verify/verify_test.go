package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMissingToolIsNamedWithItsPackages(t *testing.T) {
	yes := func(*runner) bool { return true }
	no := func(*runner) bool { return false }
	names, packages := missing(&runner{}, []tool{
		{"gcc", "the race detector", []string{"gcc", "libc6-dev"}, no},
		{"node", "the page", []string{"nodejs"}, yes},
	})
	if diff := cmp.Diff([]string{"gcc (the race detector)"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"gcc", "libc6-dev"}, packages); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsCompareByNumber(t *testing.T) {
	for text, tooOld := range map[string]bool{"v18.19.0\n": true, "v20.18.9": true, "v20.19.0": false, "v22.1.0": false, "9.2.0": true} {
		have, err := parseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		if have.before(oldestNode) != tooOld {
			t.Errorf("%q before %v: %v, want %v", text, oldestNode, !tooOld, tooOld)
		}
	}
	if _, err := parseVersion("bash: node: not found"); err == nil {
		t.Error("an error message was read as a version")
	}
}

func TestPhasesAreChosenByNameAndByGroup(t *testing.T) {
	for only, want := range map[string][]string{
		"format":    {"format"},
		"quick":     {"format", "layers", "requirements", "vet"},
		"web-build": {"tools", "write-page"},
		"vet,lint":  {"vet", "lint"},
	} {
		chosen, err := choose(phases(), only)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range chosen {
			got = append(got, p.name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-only %s (-want +got):\n%s", only, diff)
		}
	}
	if _, err := choose(phases(), "nonsense"); err == nil {
		t.Error("a phase that does not exist was accepted")
	}
}

func TestEverythingRunsExceptWritingThePage(t *testing.T) {
	chosen, err := choose(phases(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(chosen) != len(phases())-1 {
		t.Fatalf("%d of %d phases", len(chosen), len(phases()))
	}
}

func TestAChangedBuildIsSeen(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	prints := func() map[string][32]byte {
		t.Helper()
		p, err := fingerprints(dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("same", "a")
	write("other", "a")
	write("gone", "a")
	before := prints()
	write("other", "b")
	write("new", "b")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	got := differences(before, prints())
	want := []string{filepath.Join(dir, "gone"), filepath.Join(dir, "new"), filepath.Join(dir, "other")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if none, err := fingerprints(filepath.Join(dir, "absent")); err != nil || len(none) != 0 {
		t.Fatalf("an absent folder: %v, %v", none, err)
	}
}

func TestAFolderAheadInThePathWins(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "go")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &runner{env: []string{"PATH=/nowhere", "PATH=" + dir}}
	if got, err := r.look("go"); err != nil || got != program {
		t.Fatalf("found %q, %v; want %q", got, err, program)
	}
}

func TestTheGreetingTellsWhereTheServerIs(t *testing.T) {
	lines := make(chan string, 3)
	lines <- "listening on http://127.0.0.1:1"
	lines <- "sign in (once, within 10 minutes): http://127.0.0.1:1/login?code=x"
	close(lines)
	url, login, err := greeting(lines)
	if err != nil || url != "http://127.0.0.1:1" || login != "http://127.0.0.1:1/login?code=x" {
		t.Fatalf("%q %q %v", url, login, err)
	}
	if _, _, err := greeting(lines); err == nil {
		t.Fatal("a server that ended was taken for one that listens")
	}
}

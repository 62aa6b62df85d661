package importer

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// edge §4
func TestAFolderReadsLikeAnyFileSystemAndItsLinksDoNotLeaveIt(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "secret"), "x")
	for _, name := range []string{"top.json", "a/one.json", "a/two.json", "b/c/three.json"} {
		write(filepath.Join(dir, filepath.FromSlash(name)), name)
	}
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(f, "top.json", "a/one.json", "a/two.json", "b/c/three.json"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "a", "out")); err != nil {
		t.Skip("no links here:", err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../top.json", filepath.Join(dir, "a", "in")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/out", "gone/secret", "../" + filepath.Base(outside) + "/secret"} {
		if text, err := fs.ReadFile(f, name); err == nil {
			t.Errorf("%s gave %q", name, text)
		}
	}
	if text, err := fs.ReadFile(f, "a/in"); err != nil || string(text) != "top.json" {
		t.Errorf("a link inside: %q %v", text, err)
	}
}

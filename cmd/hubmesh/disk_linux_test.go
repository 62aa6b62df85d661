package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// bad input: a full disk. Whoever runs the mesh can make room with it, and sees that it is needed.
func TestOnAFullDiskTheServerIsNotReadyAndNodesCanBeDeleted(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("no disk of its own: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(data, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := mustStart(t, dir, nil)
	want := func(method, path, body string, status int, words ...string) {
		t.Helper()
		got, text, _ := p.do(method, path, p.token, body)
		if got != status {
			t.Fatalf("%s %s: %d %s", method, path, got, text)
		}
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s %s lacks %q: %s", method, path, word, text)
			}
		}
	}
	want("PUT", "/api/nodes/acme", `{"nodeType":"Space","content":{}}`, 201)
	made := 0
	for _, size := range []int{100_000, 3_000, 10} { // until not even a little fits
		body := `{"content":{"text":"` + strings.Repeat("x", size) + `"}}`
		for {
			status, text, _ := p.do("PUT", fmt.Sprintf("/api/nodes/acme/n%d", made), p.token, body)
			if status == 507 {
				break
			}
			if status != 201 || made > 20_000 {
				t.Fatalf("%d: %d %s", made, status, text)
			}
			made++
		}
	}
	want("GET", "/ready", "", 503, "store: free some space")
	want("GET", "/alive", "", 200)
	for i := range made / 2 {
		want("DELETE", fmt.Sprintf("/api/nodes/acme/n%d", i), "", 200)
	}
	want("DELETE", "/api/nodes/acme?recursive", "", 200)
	want("GET", "/api/nodes/acme", "", 404)
	if err := syscall.Mount("", data, "", syscall.MS_REMOUNT, "size=128m"); err != nil {
		t.Fatal(err)
	}
	want("GET", "/ready", "", 200)
	want("PUT", "/api/nodes/acme", `{"nodeType":"Space","content":{}}`, 201)
}

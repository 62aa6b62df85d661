package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
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
	for range 3 { // asking makes no room, and is not answered by the room that the last question took
		want("GET", "/ready", "", 503, "store: free some space")
	}
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

// bad input: a full disk, of the database server. What was acknowledged is there, and it goes on by itself.
func TestOnAFullDiskOfTheDatabaseServerTheServerIsNotReadyUntilThereIsRoom(t *testing.T) {
	disk := t.TempDir()
	if err := os.Chmod(filepath.Dir(disk), 0o755); err != nil { // the database's user goes through it
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("no disk of its own: %v", err)
	}
	own, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if u, err := user.Lookup("postgres"); err == nil && os.Getuid() == 0 {
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(disk, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"create tablespace small location '" + disk + "'", "create database full_one tablespace small"} {
		if err := own.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	p := mustStart(t, t.TempDir(), nil, "--postgres", fmt.Sprintf("postgres://postgres@127.0.0.1:%d/full_one?sslmode=disable", own.Port()))
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
	// Random text: the server compresses what repeats itself.
	made := 0
	for _, size := range []int{300_000, 30_000, 3_000} {
		for {
			status, text, _ := p.do("PUT", fmt.Sprintf("/api/nodes/acme/n%d", made), p.token, `{"content":{"text":"`+incompressible(size, made)+`"}}`)
			if status == 507 {
				break
			}
			if status != 201 || made > 20_000 {
				t.Fatalf("%d: %d %s", made, status, text)
			}
			made++
		}
	}
	want("GET", "/ready", "", 503, "store: free some space on the server")
	want("GET", "/alive", "", 200)
	want("GET", fmt.Sprintf("/api/nodes/acme/n%d", made-1), "", 200)
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	want("GET", "/ready", "", 200)
	for i := range made {
		want("GET", fmt.Sprintf("/api/nodes/acme/n%d", i), "", 200)
	}
	want("PUT", "/api/nodes/acme/after", `{"content":{}}`, 201)
	want("DELETE", "/api/nodes/acme?recursive", "", 200)
}

// incompressible is text of letters in no order, another one for each seed.
func incompressible(size, seed int) string {
	r := rand.New(rand.NewPCG(uint64(seed), uint64(size)))
	b := make([]byte, size)
	for i := range b {
		b[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[r.IntN(64)]
	}
	return string(b)
}

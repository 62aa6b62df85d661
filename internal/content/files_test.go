package content

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// edge §4
// edge invariant 37
func TestAnUploadIsSeenAtOnceReplacesAtOnceAndAFailedOneLeavesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.put("acme", "content", "a/b.txt", "one")
	r.mustRead("acme/a/b.txt", "one")
	f, err := r.content.Read(r.admin, []string{"acme", "a", "b.txt"})
	if err != nil {
		t.Fatal(err)
	}
	r.put("acme", "content", "a/b.txt", "two") // while a reader holds the old file
	if b, err := io.ReadAll(f); err != nil || string(b) != "one" {
		t.Fatalf("%q %v", b, err)
	}
	f.Close()
	r.mustRead("acme/a/b.txt", "two")
	_, _, err = r.content.Put(r.admin, "acme", "content", "a/b.txt", io.MultiReader(bytes.NewReader([]byte("thr")), broken{}))
	if err == nil {
		t.Fatal("a broken upload was stored")
	}
	r.mustRead("acme/a/b.txt", "two")
	list, err := r.content.List(r.admin, "acme", "content", "a")
	if err != nil || len(list) != 1 || list[0].Name != "b.txt" || list[0].Size != 3 {
		t.Fatalf("%+v %v", list, err)
	}
	if err := r.content.Delete(r.admin, "acme", "content", "a/b.txt"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.read(r.admin, "acme/a/b.txt"); !isNotFound(err) {
		t.Fatal(err)
	}
	// A node without a collection gets one by its first upload.
	r.create("acme/fresh")
	if err := r.nodes.Grant(r.admin, "acme", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.content.Put(as("stranger"), "acme", "content", "x.txt", strings.NewReader("x")); err == nil {
		t.Fatal("a stranger uploads")
	}
	if _, _, err := r.content.Put(as("ed"), "acme/fresh", "content", "x.txt", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the client has gone") }

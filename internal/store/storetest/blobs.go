package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
)

func runBlobs(t *testing.T, open Factory) {
	t.Run("a blob is kept by bucket and key, replaced and deleted", func(t *testing.T) {
		b := setup(t, open, Options{})
		blobs, ctx := b.Blobs(), t.Context()
		var missing *store.NotFoundError
		if _, err := blobs.Get(ctx, "tokens", "a"); !errors.As(err, &missing) {
			t.Errorf("got %v", err)
		}
		for _, value := range [][]byte{[]byte("one"), {}, {0, 255, 1}, bytes.Repeat([]byte{7}, store.MaxBlobValue)} {
			if err := blobs.Put(ctx, "tokens", "a", value); err != nil {
				t.Fatal(err)
			}
			if got, err := blobs.Get(ctx, "tokens", "a"); err != nil || !bytes.Equal(got, value) || got == nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}
		if err := blobs.Put(ctx, "settings", "a", []byte("other")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := blobs.Delete(ctx, "tokens", "a"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := blobs.Get(ctx, "tokens", "a"); !errors.As(err, &missing) {
			t.Errorf("got %v", err)
		}
		if got, err := blobs.Get(ctx, "settings", "a"); err != nil || string(got) != "other" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a bucket is listed whole and alone", func(t *testing.T) {
		b := setup(t, open, Options{})
		blobs, ctx := b.Blobs(), t.Context()
		many := map[string][]byte{}
		for i := range 700 {
			many[fmt.Sprint("key/ü%_", i)] = fmt.Appendf(nil, "v%d", i)
		}
		if err := blobs.PutMany(ctx, "prints", many); err != nil {
			t.Fatal(err)
		}
		if err := blobs.Put(ctx, "prints2", "x", nil); err != nil {
			t.Fatal(err)
		}
		got, err := blobs.List(ctx, "prints")
		if err != nil || !maps.EqualFunc(got, many, slices.Equal) {
			t.Errorf("%d values, %v", len(got), err)
		}
		if got, err := blobs.List(ctx, "empty"); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("what does not fit is refused, and of many all", func(t *testing.T) {
		b := setup(t, open, Options{})
		blobs, ctx := b.Blobs(), t.Context()
		long := strings.Repeat("x", store.MaxBlobKey+1)
		for _, key := range []string{"", long, "\x00", "\xff"} {
			if err := blobs.Put(ctx, "b", key, nil); err == nil {
				t.Errorf("key %.10q is accepted", key)
			}
			if err := blobs.Put(ctx, key, "k", nil); err == nil {
				t.Errorf("bucket %.10q is accepted", key)
			}
		}
		if err := blobs.PutMany(ctx, "b", map[string][]byte{"good": nil, "bad": make([]byte, store.MaxBlobValue+1)}); err == nil {
			t.Error("a large value is accepted")
		}
		if got, err := blobs.List(ctx, "b"); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
}

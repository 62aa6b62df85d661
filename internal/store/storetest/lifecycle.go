package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
)

// calls are all methods that wait, by name.
func calls(b bench) map[string]func(context.Context) error {
	blobs := b.Blobs()
	return map[string]func(context.Context) error{
		"Read":     func(ctx context.Context) error { _, err := b.Read(ctx, "acme/x"); return err },
		"ReadMany": func(ctx context.Context) error { _, err := b.ReadMany(ctx, nil); return err },
		"Prefix":   func(ctx context.Context) error { _, err := b.Prefix(ctx, "acme/x"); return err },
		"Commit": func(ctx context.Context) error {
			_, err := b.Commit(ctx, []store.Write{create("acme/new", 1)})
			return err
		},
		"Children": func(ctx context.Context) error { _, err := b.Children(ctx, "acme", store.Page{}); return err },
		"Descendants": func(ctx context.Context) error {
			for _, err := range b.Descendants(ctx, "acme") {
				return err
			}
			return nil
		},
		"Select":          func(ctx context.Context) error { _, err := b.Select(ctx, mustParse(b.t, "name:x")); return err },
		"Versions":        func(ctx context.Context) error { _, err := b.Versions(ctx, "acme/x", store.VersionPage{}); return err },
		"At":              func(ctx context.Context) error { _, err := b.At(ctx, "acme/x", 1); return err },
		"EnsurePartition": func(ctx context.Context) error { return b.EnsurePartition(ctx, "new", "") },
		"Partitions":      func(ctx context.Context) error { _, err := b.Partitions(ctx); return err },
		"MarkPartition":   func(ctx context.Context) error { return b.MarkPartition(ctx, "acme", true) },
		"RemovePartition": func(ctx context.Context) error { return b.RemovePartition(ctx, "other") },
		"Ready":           b.Ready,
		"Get":             func(ctx context.Context) error { _, err := blobs.Get(ctx, "b", "k"); return err },
		"Put":             func(ctx context.Context) error { return blobs.Put(ctx, "b", "k", nil) },
		"PutMany":         func(ctx context.Context) error { return blobs.PutMany(ctx, "b", map[string][]byte{"k": nil}) },
		"Delete":          func(ctx context.Context) error { return blobs.Delete(ctx, "b", "k") },
		"List":            func(ctx context.Context) error { _, err := blobs.List(ctx, "b"); return err },
	}
}

func runLifecycle(t *testing.T, open Factory) {
	t.Run("an open store is ready", func(t *testing.T) {
		b := setup(t, open, Options{})
		if err := b.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("every call after the end answers that the store is closed", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		for name, call := range calls(b) {
			if err := call(t.Context()); !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := b.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
	})
	t.Run("a call whose context has ended does nothing and says so", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		for name, call := range calls(b) {
			if err := call(canceled(t)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		}
		b.absent("acme/new", 0)
		if all, err := b.Partitions(t.Context()); err != nil || len(all) != 2 || all[0].Deleting {
			t.Errorf("%v, %v", all, err)
		}
	})
	t.Run("closing waits for a running commit, which is kept", func(t *testing.T) {
		b := setup(t, open, Options{})
		publishing, leave := make(chan struct{}), make(chan struct{})
		b.Subscribe(func(store.Change) {
			close(publishing)
			<-leave
		})
		var work sync.WaitGroup
		work.Go(func() {
			if _, err := b.Commit(t.Context(), []store.Write{create("acme/x", 1)}); err != nil {
				t.Errorf("the commit that was running: %v", err)
			}
		})
		<-publishing
		closed := make(chan error, 1)
		work.Go(func() { closed <- b.Close() })
		select {
		case err := <-closed:
			t.Errorf("it closed during a commit: %v", err)
		default:
		}
		close(leave)
		work.Wait()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

package nodehub_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// AC-R1: what was granted to what is gone counts for nobody who comes there
func TestANodeIsMadeAnewOnlyOnceThisProcessHasBeenToldOfItsDeletion(t *testing.T) {
	told, away := 0, error(nil)
	r := newRig(t, func(o *nodehub.Options) {
		o.Shared = true
		o.Told = func(context.Context) error { told++; return away }
	})
	first := func(out []nodehub.Outcome, err error) error {
		if err == nil {
			err = out[0].Err
		}
		return err
	}
	n := node.Node{Path: "acme/x", Content: node.RawContent(`{}`)}
	ways := map[string]func() error{
		"create":      func() error { _, err := r.c.Create(r.root, n); return err },
		"put":         func() error { _, _, err := r.c.Put(r.root, n, nodehub.Condition{}); return err },
		"create many": func() error { return first(r.c.CreateMany(r.root, []node.Node{n})) },
		"import":      func() error { return first(r.c.Import(r.root, []node.Node{n})) },
	}
	if told = 0; ways["create"]() != nil || told != 0 {
		t.Fatalf("the first life waited %d times", told)
	}
	for what, create := range ways {
		t.Run(what, func(t *testing.T) {
			if _, err := r.c.Delete(r.root, "acme/x", false, nodehub.Condition{}); err != nil {
				t.Fatal(err)
			}
			told, away = 0, errors.New("the feed is away")
			var f *message.Failure
			if err := create(); !errors.As(err, &f) || f.Type != message.ShuttingDown || told == 0 {
				t.Errorf("without the news: %v", err)
			}
			if _, err := r.store.Read(t.Context(), "acme/x"); !errors.As(err, new(*store.NotFoundError)) {
				t.Errorf("it was made all the same: %v", err)
			}
			told, away = 0, nil
			if err := create(); err != nil || told == 0 {
				t.Errorf("asked %d times: %v", told, err)
			}
		})
	}
	t.Run("below a level that has no node", func(t *testing.T) {
		told = 0
		r.create("acme/gone/y", "", `{}`)
		if told == 0 {
			t.Error("it did not wait")
		}
	})
	t.Run("an import of a space with what is below it", func(t *testing.T) {
		out, err := r.c.Import(r.root, []node.Node{{Path: "fresh/y", Content: node.RawContent(`{}`)}, {Path: "fresh", NodeType: node.TypeSpace, Content: node.RawContent(`{}`)}})
		for _, o := range out {
			if err == nil {
				err = o.Err
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}

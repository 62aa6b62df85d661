package e2e_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/client"
)

// RFC 9110 §13.1
// Silos share one folder of files: of many that replace the same file through all of them, one does, round after
// round, and what it wrote is there.
func TestOneOfManyWhoReplaceTheSameFileThroughThreeSilosDoes(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	silos := w.start("a", "b", "c")
	ctx := t.Context()
	silos[0].create("town", "town/files")
	put := func(p *silo, text string, when client.FileIf) (client.Uploaded, error) {
		return p.client().UploadIf(ctx, "town/files", "content", "f.txt", strings.NewReader(text), when)
	}
	now, err := put(silos[0], "first", client.FileIf{Absent: true})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		const writers = 12
		stored, errs := make([]client.Uploaded, writers), make([]error, writers)
		var work sync.WaitGroup
		for i := range writers {
			work.Go(func() {
				stored[i], errs[i] = put(silos[i%len(silos)], fmt.Sprint(round, " by ", i), client.FileIf{ETag: now.ETag})
			})
		}
		work.Wait()
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won >= 0:
				t.Errorf("round %d: %d and %d replaced it", round, won, i)
			case err == nil:
				won = i
			case !client.HasCode(err, "stale"):
				t.Error(err)
			}
		}
		if won < 0 {
			t.Fatal("nobody replaced it")
		}
		now = stored[won]
		for _, p := range silos {
			body, err := p.client().Download(ctx, "town/files", "content", "f.txt")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(body)
			body.Close()
			if err != nil || string(text) != fmt.Sprint(round, " by ", won) {
				t.Errorf("round %d: %s serves %q, and %d replaced it (%v)", round, p.name, text, won, err)
			}
		}
	}
}

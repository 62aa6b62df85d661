package sqlite_test

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
	"github.com/hubmesh/hubmesh/internal/store/storetest"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func open(t testing.TB, options sqlite.Options) *sqlite.Store {
	t.Helper()
	if options.File == "" {
		options.File = filepath.Join(t.TempDir(), "mesh.db")
	}
	options.Log = quiet()
	s, err := sqlite.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// data §2.1, §2.2, §2.4, §1.3
func TestTheSQLiteStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, o storetest.Options) store.Store {
		return open(t, sqlite.Options{History: o.History, ScanRows: o.ScanRows, ScanBytes: o.ScanBytes})
	})
}

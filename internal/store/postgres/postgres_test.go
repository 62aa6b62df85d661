package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
	"github.com/hubmesh/hubmesh/internal/store/storetest"
)

var (
	server   *pgtest.Server // serves every test of this package that does not need one of its own
	template string         // URL of a database with the schema
)

func TestMain(m *testing.M) {
	var err error
	if server, err = pgtest.Start("fsync=off", "full_page_writes=off", "max_connections=400"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if template, err = migrated(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func migrated() (string, error) {
	url, err := server.Database(context.Background())
	if err != nil {
		return "", err
	}
	s, err := postgres.Open(context.Background(), postgres.Options{URL: url, Log: quiet()})
	if err != nil {
		return "", err
	}
	return url, s.Close()
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// database makes a database with the schema.
func database(t testing.TB) string {
	t.Helper()
	url, err := server.Copy(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func open(t testing.TB, options postgres.Options) *postgres.Store {
	t.Helper()
	if options.URL == "" {
		options.URL = database(t)
	}
	if options.Log == nil {
		options.Log = quiet()
	}
	s, err := postgres.Open(t.Context(), options)
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
func TestThePostgreSQLStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, o storetest.Options) store.Store {
		return open(t, postgres.Options{History: o.History, ScanRows: o.ScanRows, ScanBytes: o.ScanBytes})
	})
}

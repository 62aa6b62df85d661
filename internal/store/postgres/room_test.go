package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// cramped opens a store whose role gets no connection beyond those that it has: one of each pool. refusals counts those
// that the server has refused.
func cramped(t *testing.T) (s *postgres.Store, url string, refusals func() int) {
	t.Helper()
	url, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	role := "cramped_" + config.Database
	for _, text := range []string{"create role " + role + " login", "grant pg_read_all_settings to " + role} {
		if err := server.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := rawly(t, url, "grant create on schema public to "+role); err != nil {
		t.Fatal(err)
	}
	url = strings.Replace(url, "postgres@", role+"@", 1)
	s = open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	must(t, s, create("acme/x", 1))
	if _, err := s.Read(t.Context(), "acme/x"); err != nil {
		t.Fatal(err)
	}
	if err := server.Exec(t.Context(), "alter role "+role+" connection limit 1"); err != nil {
		t.Fatal(err)
	}
	return s, url, func() int {
		return strings.Count(server.Log(), fmt.Sprintf("too many connections for role %q", role))
	}
}

// issue 4: a connection that the server refuses, beside those that there are
func TestWhereTheServerRefusesAConnectionOneOfThoseThatThereAreIsWaitedFor(t *testing.T) {
	t.Parallel()
	t.Run("by a write", func(t *testing.T) {
		t.Parallel()
		s, _, refusals := cramped(t)
		giveBack, err := s.TakeLane(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer giveBack() // or the store does not close
		written := answer(s, update("acme/x", 2))
		for refusals() < 2 { // it has tried again
			if len(written) > 0 {
				t.Fatal("it did not wait", <-written)
			}
			runtime.Gosched()
		}
		giveBack()
		if err := <-written; err != nil {
			t.Error(err)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("by a read", func(t *testing.T) {
		t.Parallel()
		s, _, refusals := cramped(t)
		giveBack, err := s.TakeReader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer giveBack() // or the store does not close
		read := make(chan error, 1)
		go func() {
			_, err := s.Read(context.Background(), "acme/x")
			read <- err
		}()
		for refusals() < 6 { // more often than one whose connection was lost
			if len(read) > 0 {
				t.Fatal("it did not wait", <-read)
			}
			runtime.Gosched()
		}
		giveBack()
		if err := <-read; err != nil {
			t.Error(err)
		}
	})
	t.Run("the control: the server refuses what is more", func(t *testing.T) {
		t.Parallel()
		_, url, _ := cramped(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		var fault *pgconn.PgError
		if !errors.As(err, &fault) || fault.Code != "53300" {
			t.Fatal("this control no longer shows the fault", err)
		}
	})
}

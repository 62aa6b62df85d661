package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// storage.md §6: the URL leads to the new primary after a promotion
func TestAURLThatAsksForAServerThatTakesWritesFindsThePrimaryAmongItsHosts(t *testing.T) {
	own, err := pgtest.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	standby, err := own.Standby()
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	at := func(ports ...int) string {
		var hosts []string
		for _, port := range ports {
			hosts = append(hosts, fmt.Sprint("127.0.0.1:", port))
		}
		return "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres"
	}
	const attrs = "?target_session_attrs=read-write"
	serves := func(t *testing.T, url string) {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.EnsurePartition(t.Context(), "acme", ""); err != nil {
			t.Error(err)
		}
		if _, err := s.Partitions(t.Context()); err != nil { // on a connection that reads
			t.Error(err)
		}
		changes, err := s.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer changes.Close()
		if v, err := changes.Verify(t.Context(), nil); err != nil || v.Standby {
			t.Errorf("%+v, %v", v, err)
		}
	}
	t.Run("one host", func(t *testing.T) { serves(t, at(own.Port())+attrs) })
	t.Run("a standby comes first", func(t *testing.T) { serves(t, at(standby.Port(), own.Port())+attrs) })
	t.Run("a standby comes first, and the environment asks", func(t *testing.T) {
		t.Setenv("PGTARGETSESSIONATTRS", "read-write")
		serves(t, at(standby.Port(), own.Port()))
	})
	t.Run("a standby alone is told as one, whatever was tried to encrypt", func(t *testing.T) {
		_, err := postgres.Open(t.Context(), postgres.Options{URL: at(standby.Port()) + attrs, Log: quiet()})
		var u *store.UnavailableError
		if !errors.As(err, &u) || !u.Transient || !strings.Contains(u.Hint, "name the primary") {
			t.Errorf("got %v", err)
		}
	})
}

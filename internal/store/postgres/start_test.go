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

// bad input: what an operator may get wrong
func TestAStartThatCannotSucceedSaysInOneLineWhatToDoAndNotThePassword(t *testing.T) {
	t.Parallel()
	own, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, text := range []string{
		"create role pass login password 'good'", "create role crypt login", "create role weak login",
		"create database ascii encoding 'SQL_ASCII' template template0", "create database plain",
	} {
		if err := own.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := own.Admit(t.Context(), "host all pass 127.0.0.1/32 scram-sha-256", "hostssl all crypt 127.0.0.1/32 trust", "host all weak 127.0.0.1/32 trust"); err != nil {
		t.Fatal(err)
	}
	at := func(user, database, options string) string {
		return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s%s", user, own.Port(), database, options)
	}
	if err := rawly(t, at("postgres", "plain", ""), "revoke create on schema public from public"); err != nil { // 14 grants it
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		url, want string
		transient bool
	}{
		"no URL":                       {"", "give a URL", false},
		"a broken URL":                 {"postgres://u:s3cret@ho st/x", "give a URL", false},
		"a URL of something else":      {"mysql://u:s3cret@host/x", "give a URL", false},
		"nobody there":                 {"postgres://u:s3cret@127.0.0.1:1/x", "does not answer", true},
		"no such host":                 {"postgres://u:s3cret@nosuch.invalid/x", "does not answer", true},
		"no such database":             {at("postgres:s3cret", "missing", ""), "create it", false},
		"a wrong password":             {at("pass:s3cret", "plain", ""), "put the connection URL right", false},
		"no password":                  {at("pass", "plain", ""), "put the connection URL right", false},
		"a user that is not let in":    {at("nobody:s3cret", "plain", "?sslmode=disable"), "pg_hba.conf", false},
		"a user that must encrypt":     {at("crypt:s3cret", "plain", "?sslmode=disable"), "sslmode", false},
		"a server that can not do TLS": {at("postgres:s3cret", "plain", "?sslmode=require"), "sslmode", false},
		"no right to make tables":      {at("weak:s3cret", "plain", ""), "the right to create them", false},
		"another encoding":             {at("postgres:s3cret", "ascii", ""), "UTF8", false},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), postgres.Options{URL: c.url, Log: quiet()})
			var u *store.UnavailableError
			if !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) || u.Transient != c.transient {
				t.Fatalf("got %v", err)
			}
			if text := err.Error(); strings.Contains(text, "s3cret") || strings.Contains(text, "\n") {
				t.Errorf("it tells the password or has more than one line: %q", text)
			}
		})
	}
}

// bad input: a server that is of no use
func TestAServerThatCanNotKeepAMeshIsRefused(t *testing.T) {
	for want, err := range map[string]error{
		"13.22 (use PostgreSQL 14 or newer)": postgres.Suits(130022, "UTF8", false),
		"encoding LATIN1":                    postgres.Suits(160000, "LATIN1", false),
		"name the primary":                   postgres.Suits(160000, "UTF8", true),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// bad input: a database that another form of this program has made
func TestADatabaseThatOtherMigrationsMadeIsRefused(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]string{
		"another text":         `update mesh_schema set digest = '\x00' where version = 1`,
		"before texts counted": `alter table mesh_schema drop column digest`,
	} {
		url, err := server.Database(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second start is the control: what this program has made it takes
			s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: quiet()})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := rawly(t, url, change); err != nil {
			t.Fatal(err)
		}
		_, err = postgres.Open(t.Context(), postgres.Options{URL: url, Log: quiet()})
		var u *store.UnavailableError
		if !errors.As(err, &u) || u.Kind != store.UnavailableNewer || u.Transient || !strings.Contains(err.Error(), "migration 1") || !strings.Contains(err.Error(), "new database") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

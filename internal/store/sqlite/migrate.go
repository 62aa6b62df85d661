package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
)

// applicationID marks the file as ours in its header ("hubm").
const applicationID = 0x6875626d

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one numbered step of the schema.
type migration struct {
	number int
	name   string
	sql    string
}

// migrations returns the embedded steps, which are numbered from 1 without a gap.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for i, name := range names { // Glob sorts
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql")
		number, title, _ := strings.Cut(base, "_")
		m := migration{name: title, sql: string(text)}
		if m.number, err = strconv.Atoi(number); err != nil || m.number != i+1 {
			return nil, fmt.Errorf("migration %s is not number %d", name, i+1)
		}
		all = append(all, m)
	}
	return all, nil
}

// migrate brings the schema to the newest version this program knows.
func (s *Store) migrate(ctx context.Context) error { return s.migrateFrom(ctx, migrationFiles) }

// migrateFrom applies the steps that are missing. Each is one transaction, so that a step that fails
// leaves the schema as it was.
func (s *Store) migrateFrom(ctx context.Context, files fs.FS) error {
	steps, err := migrations(files)
	if err != nil {
		return err
	}
	current, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if current > len(steps) {
		return &store.UnavailableError{
			Kind: store.UnavailableNewer, Op: "open", Hint: hintNewer,
			Err: fmt.Errorf("a newer program has written the database: its schema is %d, this program knows %d", current, len(steps)),
		}
	}
	for _, step := range steps[current:] {
		if err := s.apply(ctx, step); err != nil {
			return fmt.Errorf("migration %d (%s): %w", step.number, step.name, err)
		}
		s.log.Info("database schema migrated", "file", s.options.File, "schema", step.number, "name", step.name)
	}
	return nil
}

// schemaVersion returns the number of the last step that was applied; 0 for an empty file.
func (s *Store) schemaVersion(ctx context.Context) (int, error) {
	w := s.writer.conn
	var id, tables, version int
	if err := w.QueryRowContext(ctx, "pragma application_id").Scan(&id); err != nil {
		return 0, err
	}
	if err := w.QueryRowContext(ctx, "select count(*) from sqlite_schema").Scan(&tables); err != nil {
		return 0, err
	}
	switch {
	case tables == 0:
		return 0, nil
	case id != applicationID:
		return 0, &store.UnavailableError{
			Kind: store.UnavailableCorrupt, Op: "open", Hint: hintCorrupt,
			Err: errors.New("the database belongs to another program"),
		}
	}
	err := w.QueryRowContext(ctx, "select coalesce(max(version), 0) from schema_version").Scan(&version)
	return version, err
}

func (s *Store) apply(ctx context.Context, step migration) error {
	w := s.writer.conn
	if _, err := w.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	err := func() error {
		if step.number == 1 {
			first := fmt.Sprintf("pragma application_id = %d; create table schema_version (version integer primary key, name text not null, applied_at text not null) strict", applicationID)
			if _, err := w.ExecContext(ctx, first); err != nil {
				return err
			}
		}
		if _, err := w.ExecContext(ctx, step.sql); err != nil {
			return err
		}
		if _, err := w.ExecContext(ctx, "insert into schema_version values (?, ?, ?)", step.number, step.name, s.options.Now().UTC().Format(time.RFC3339)); err != nil {
			return err
		}
		_, err := w.ExecContext(ctx, "commit")
		return err
	}()
	if err != nil {
		_, _ = w.ExecContext(context.WithoutCancel(ctx), "rollback")
	}
	return err
}

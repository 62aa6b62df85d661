package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// applicationID marks the file as ours in its header ("hubm").
const applicationID = 0x6875626d

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrate brings the schema to the newest version this program knows.
func (s *Store) migrate(ctx context.Context) error { return s.migrateFrom(ctx, migrationFiles) }

// migrateFrom applies the steps that are missing. Each is one transaction, so that a step that fails
// leaves the schema as it was.
func (s *Store) migrateFrom(ctx context.Context, files fs.FS) error {
	steps, err := tables.Steps(files)
	if err != nil {
		return err
	}
	current, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if current > len(steps) {
		return tables.Newer(current, len(steps), hintNewer)
	}
	for _, step := range steps[current:] {
		if err := s.apply(ctx, step); err != nil {
			return fmt.Errorf("migration %d (%s): %w", step.Number, step.Name, err)
		}
		s.log.Info("database schema migrated", "file", s.options.File, "schema", step.Number, "name", step.Name)
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

func (s *Store) apply(ctx context.Context, step tables.Step) error {
	w := s.writer.conn
	if _, err := w.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	err := func() error {
		if step.Number == 1 {
			first := fmt.Sprintf("pragma application_id = %d; create table schema_version (version integer primary key, name text not null, applied_at text not null) strict", applicationID)
			if _, err := w.ExecContext(ctx, first); err != nil {
				return err
			}
		}
		if _, err := w.ExecContext(ctx, step.SQL); err != nil {
			return err
		}
		if _, err := w.ExecContext(ctx, "insert into schema_version values (?, ?, ?)", step.Number, step.Name, s.options.Now().UTC().Format(time.RFC3339)); err != nil {
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

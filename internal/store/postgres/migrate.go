package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/store/tables"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationLock is the key of the advisory lock under which one process at a time migrates ("hubm").
const migrationLock = 0x6875626d

func (s *Store) migrate(ctx context.Context) error { return s.migrateFrom(ctx, migrationFiles) }

// migrateFrom brings the schema to the newest version this program knows: all missing steps in one
// transaction, under a lock that it holds, so that of several processes one migrates and a step that
// fails leaves nothing behind.
func (s *Store) migrateFrom(ctx context.Context, files fs.FS) error {
	steps, err := tables.Steps(files)
	if err != nil {
		return err
	}
	conn, err := s.connect(ctx, "migrate", nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var done []tables.Step
	// Whoever has waited for the lock sees what was migrated meanwhile.
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// The bound is openBound, whatever the database's or the role's are.
		if _, err := tx.Exec(ctx, "set local lock_timeout = 0; set local statement_timeout = 0", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return err
		}
		current, err := applied(ctx, tx, steps)
		if err != nil {
			return err
		}
		for _, step := range steps[current:] {
			if _, err := tx.Exec(ctx, step.SQL, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("migration %d (%s): %w", step.Number, step.Name, err)
			}
			if _, err := tx.Exec(ctx, "insert into mesh_schema (version, name, digest) values ($1, $2, $3)", step.Number, step.Name, step.Digest); err != nil {
				return err
			}
			done = append(done, step)
		}
		return sameServer(ctx, tx)
	})
	for _, step := range done {
		if err == nil {
			s.log.Info("database schema migrated", "schema", step.Number, "name", step.Name)
		}
	}
	return err
}

// applied returns how many of the steps were applied. It refuses a schema that has more of them, and one that a step
// of the same number and other text has made: its triggers would be other ones.
func applied(ctx context.Context, tx pgx.Tx, steps []tables.Step) (count int, err error) {
	_, err = tx.Exec(ctx, "create table if not exists mesh_schema (version int primary key, name text not null, digest bytea, applied_at timestamptz not null default clock_timestamp())")
	if err != nil {
		return 0, err
	}
	if err := tx.QueryRow(ctx, "select coalesce(max(version), 0) from mesh_schema").Scan(&count); err != nil {
		return 0, err
	}
	if count > len(steps) {
		return 0, tables.Newer(count, len(steps), hintNewer)
	}
	if count == 0 {
		return 0, nil
	}
	var digested bool // not before there were digests
	if err := tx.QueryRow(ctx, "select exists (select from pg_attribute where attrelid = 'mesh_schema'::regclass and attname = 'digest')").Scan(&digested); err != nil {
		return 0, err
	}
	if !digested {
		return 0, tables.Otherwise(steps[0], hintOtherwise)
	}
	for _, step := range steps[:count] {
		var same bool
		if err := tx.QueryRow(ctx, "select coalesce(digest = $2, false) from mesh_schema where version = $1", step.Number, step.Digest).Scan(&same); err != nil {
			return 0, err
		}
		if !same {
			return 0, tables.Otherwise(step, hintOtherwise)
		}
	}
	return count, nil
}

// strangeText is true where the database was restored on another server.
const strangeText = "select from mesh_store m, pg_control_system() c where m.system_id <> c.system_identifier"

// settleIn does at a running process what [sameServer] does at a start. What has to go goes in slices, so that a bound
// that ends it in the middle is not in the way for ever. A slice holds only rows from before whoever comes first is done.
func (s *Store) settleIn(ctx context.Context, conn *pgx.Conn) error {
	var strange bool
	if err := conn.QueryRow(ctx, "select exists ("+strangeText+")").Scan(&strange); err != nil || !strange {
		return err
	}
	for {
		tag, err := s.exec(ctx, "delete from mesh_changes where ctid = any (array(select c.ctid from mesh_changes c where exists ("+strangeText+") limit $1))", pruneRows)
		if err != nil {
			return err
		}
		if tag.RowsAffected() < pruneRows {
			break
		}
	}
	return s.writing(ctx, func(tx pgx.Tx) error { return sameServer(ctx, tx) })
}

// sameServer empties the change rows of a database that was restored on another server: their transaction
// ids mean nothing there.
func sameServer(ctx context.Context, tx pgx.Tx) error {
	tag, err := tx.Exec(ctx, `update mesh_store set system_id = c.system_identifier, pruned_before = pg_snapshot_xmin(pg_current_snapshot())
from pg_control_system() c where system_id <> c.system_identifier`)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	for _, text := range []string{"delete from mesh_changes", "delete from mesh_feed_marks", "delete from mesh_consumers"} {
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

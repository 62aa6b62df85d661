package postgres

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Blobs returns the side table; see [store.Store].
func (s *Store) Blobs() store.Blobs { return blobs{s} }

type blobs struct{ s *Store }

// valueText is a value in a form that no setting of the server changes: through a pooler values come as texts.
const valueText = "encode(value, 'hex')"

func (b blobs) Get(ctx context.Context, bucket, key string) (value []byte, err error) {
	err = b.s.reading(ctx, func() error {
		var text string
		err := b.s.reads.QueryRow(ctx, "select "+valueText+" from mesh_blobs where bucket = $1 and key = $2", bucket, key).Scan(&text)
		if err == nil {
			value, err = hex.DecodeString(text)
		}
		return err
	})
	if noRows(err) {
		return nil, &store.NotFoundError{Path: node.Path(bucket + "/" + key)}
	}
	return value, b.s.readFault(ctx, "read a record", err)
}

func (b blobs) Put(ctx context.Context, bucket, key string, value []byte) error {
	return b.PutMany(ctx, bucket, map[string][]byte{key: value})
}

func (b blobs) PutMany(ctx context.Context, bucket string, values map[string][]byte) error {
	var keys []string
	var list [][]byte
	for key, value := range values {
		if err := store.CheckBlob(bucket, key, value); err != nil {
			return err
		}
		keys = append(keys, key)
	}
	if err := b.s.begin(ctx); err != nil {
		return err
	}
	defer b.s.running.Done()
	slices.Sort(keys) // several processes lock in one order
	for _, key := range keys {
		list = append(list, append([]byte{}, values[key]...)) // nil would be null
	}
	_, err := b.s.exec(ctx, `insert into mesh_blobs (bucket, key, value) select $1, i.key, i.value from unnest($2::text[], $3::bytea[]) as i(key, value)
on conflict (bucket, key) do update set value = excluded.value`, bucket, keys, list)
	return b.s.readFault(ctx, "write records", err)
}

func (b blobs) Delete(ctx context.Context, bucket, key string) error {
	if err := b.s.begin(ctx); err != nil {
		return err
	}
	defer b.s.running.Done()
	_, err := b.s.exec(ctx, "delete from mesh_blobs where bucket = $1 and key = $2", bucket, key)
	return b.s.readFault(ctx, "delete a record", err)
}

func (b blobs) List(ctx context.Context, bucket string) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := b.s.reading(ctx, func() error {
		rows, err := b.s.reads.Query(ctx, "select key, "+valueText+" from mesh_blobs where bucket = $1", bucket)
		if err != nil {
			return err
		}
		var key, text string
		_, err = pgx.ForEachRow(rows, []any{&key, &text}, func() (err error) {
			all[key], err = hex.DecodeString(text)
			return err
		})
		return err
	})
	if err != nil {
		return nil, b.s.readFault(ctx, "list records", err)
	}
	return all, nil
}

package postgres_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// issue 4: whatever the defaults of the database are
func TestRecordsAndTimesAreReadWhateverFormTheDatabaseGivesThem(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, through func(string) string) {
		url := database(t)
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []string{"bytea_output = 'escape'", "datestyle = 'German, DMY'", "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kolkata'", "extra_float_digits = -15"} {
			if err := server.Exec(t.Context(), fmt.Sprintf("alter database %s set %s", config.Database, set)); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, postgres.Options{URL: through(url)})
		want := map[string][]byte{"bytes": {0, 1, '\\', '\'', 0x7f, 0x80, 0xff}, "hex": []byte(`\x41`), "none": {}}
		if err := s.Blobs().PutMany(t.Context(), "test", want); err != nil {
			t.Fatal(err)
		}
		all, err := s.Blobs().List(t.Context(), "test")
		if err != nil || !maps.EqualFunc(all, want, bytes.Equal) {
			t.Errorf("listed %q %v", all, err)
		}
		for key, value := range want {
			if got, err := s.Blobs().Get(t.Context(), "test", key); err != nil || got == nil || !bytes.Equal(got, value) {
				t.Errorf("%s is read as %q %v", key, got, err)
			}
		}
		space(t, s, "acme")
		must(t, s, create("acme/x", 1), create("acme/y", 1))
		must(t, s, update("acme/x", 2), remove("acme/y", 2))
		w := update("acme/x", 2)
		n, err := s.Read(t.Context(), "acme/x")
		if err != nil || !n.ModifiedAt.Equal(w.Node.ModifiedAt) || !n.CreatedAt.Equal(at) {
			t.Errorf("%+v %v", n, err)
		}
		if infos, err := s.Versions(t.Context(), "acme/x", store.VersionPage{}); err != nil || len(infos) != 2 || !infos[1].At.Equal(at.Add(1e9)) {
			t.Errorf("%+v %v", infos, err)
		}
		if spaces, err := s.Partitions(t.Context()); err != nil || !slices.ContainsFunc(spaces, func(p store.Partition) bool { return p.Name == "acme" && !p.CreatedAt.IsZero() }) {
			t.Errorf("%+v %v", spaces, err)
		}
		c, p := changes(t, s)
		must(t, s, update("acme/x", 3))
		if got := follow(t, c, p); len(got) != 1 {
			t.Error(got)
		}
		if _, _, err := s.Positions().Take(t.Context(), "test", "me", 30e9); err != nil {
			t.Error(err)
		}
		if _, err := s.Prune(t.Context()); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Queue(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

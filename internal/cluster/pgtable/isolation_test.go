package pgtable_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// protocol.md §2, issue 4: whatever the defaults of the database are
func TestChangesOfTheMembersThatWaitForEachOtherSucceedWhateverTheDefaultIsolationIs(t *testing.T) {
	url := database(t)
	exec(t, url, "do $$ begin execute format('alter database %I set default_transaction_isolation = ''repeatable read''', current_database()); end $$")
	holder, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), "begin; update mesh_view set number = number + 1"); err != nil {
		t.Fatal(err)
	}
	watch, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(context.Background())
	ends := make(chan error, 2)
	for i, name := range []string{"a", "b"} {
		m := membership.Member{Name: name, Epoch: membership.Epoch(i + 1), Addr: name}
		open(t, url, func() {}).Join(m, nil, func(_ *membership.View, err error) { ends <- err })
	}
	for waiting := 0; waiting < 2; {
		if len(ends) > 0 {
			t.Fatal("it waited for nothing", <-ends)
		}
		if err := watch.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holder.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
}

package hubmesh_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh"
)

// metrics reads what a mesh tells Prometheus.
func metrics(t *testing.T, server string) string {
	t.Helper()
	resp, err := http.Get(server + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return "\n" + string(text)
}

// issue 4: background text search; how far it is behind is a metric of every process, whichever fills it
func TestOneOfTheProcessesFillsTheTextIndexAndBothTellHowItStands(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	b, _ := share(t, url)
	servers := []string{listenAndServe(t, a), listenAndServe(t, b)}
	defer http.DefaultClient.CloseIdleConnections()
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme/x", "Markdown", map[string]any{"text": "A needle"}); err != nil {
		t.Fatal(err)
	}
	if found, err := a.Query(ctx, "NEEDLE"); err != nil || len(found) != 1 {
		t.Error(found, err)
	}
	eventually(t, "the index", func() error {
		a.LookAtSearch()
		b.LookAtSearch()
		filled := 0
		for i, server := range servers {
			text := metrics(t, server)
			for _, line := range []string{"\nhubmesh_search_whole 1\n", "\nhubmesh_search_behind_seconds 0\n"} {
				if !strings.Contains(text, line) {
					return fmt.Errorf("process %d does not tell %q", i, line)
				}
			}
			if !strings.Contains(text, "\nhubmesh_search_indexed_total 0\n") {
				filled++
			}
		}
		if filled != 1 {
			return fmt.Errorf("%d processes have filled it", filled)
		}
		return nil
	})
	eventually(t, "the grant to count there, too", func() error {
		if found, err := b.Query(ctx, "NEEDLE"); err != nil || len(found) != 1 {
			return fmt.Errorf("%v %v", found, err)
		}
		return nil
	})
}

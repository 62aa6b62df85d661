package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// CF-4, issue 4: somebody may have moved the sequence of the positions
func TestTheRowsOfAPathStandInTheOrderOfTheirVersionsWhereItsWritersCountThem(t *testing.T) {
	row := func(pos, version int64, origin string) store.ChangeRow {
		return store.ChangeRow{XID: 100 + uint64(version), Pos: pos, Version: version, Origin: origin, Path: "p"}
	}
	other := store.ChangeRow{XID: 1, Pos: 5, Version: 9, Origin: "a", Path: "q"}
	for name, c := range map[string]struct {
		rows []store.ChangeRow
		all  string // of p, as versions
		last int64  // where the read is cut
	}{
		"by position":                                 {rows: []store.ChangeRow{row(1, 4, "a"), row(3, 6, "a"), row(2, 5, "b")}, all: "4 5 6", last: 6},
		"the sequence was moved back":                 {rows: []store.ChangeRow{row(100, 7, "a"), row(2, 8, "b")}, all: "7 8", last: 8},
		"twice":                                       {rows: []store.ChangeRow{row(100, 7, "a"), row(50, 8, "a"), row(2, 9, "b")}, all: "7 8 9", last: 9},
		"another program counts as it likes":          {rows: []store.ChangeRow{row(1, 8, ""), row(2, 1, "")}, all: "8 1", last: 1},
		"and stays where it is among others":          {rows: []store.ChangeRow{row(100, 7, "a"), row(50, 3, ""), row(2, 8, "b")}, all: "7 3 8", last: 8},
		"the control: versions of others say nothing": {rows: []store.ChangeRow{row(1, 8, "a"), row(2, 1, "")}, all: "8 1", last: 1},
	} {
		for _, cut := range []bool{false, true} {
			var b buffer
			if cut {
				b.cut("a")
			}
			b.add(append(slices.Clone(c.rows), other))
			var got []string
			var places []node.Path
			for _, r := range b.rows() {
				places = append(places, r.Path)
				if r.Path == "p" {
					got = append(got, fmt.Sprint(r.Version))
				}
			}
			if text := strings.Join(got, " "); !cut && text != c.all {
				t.Errorf("%s: %s, want %s", name, text, c.all)
			}
			if cut && got[len(got)-1] != fmt.Sprint(c.last) {
				t.Errorf("%s, cut: %v, want %d last", name, got, c.last)
			}
			if !slices.Contains(places, "q") {
				t.Errorf("%s: another path is gone", name)
			}
		}
	}
}

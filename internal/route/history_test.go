package route

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// issue 3: why names the last refusals
func TestTheLastIncidentsOfAnAddressAreKeptNewestFirstAndNoMoreThanFit(t *testing.T) {
	var h history
	if got := h.of("a", 0); got != nil {
		t.Fatalf("%v", got)
	}
	for i := range maxHistory + 10 {
		addr := "b"
		if i == 5 || i == 100 || i == 300 {
			addr = "a"
		}
		h.note(addr, time.Duration(i)*time.Millisecond, Incident{What: "refused"})
	}
	want := []Incident{{AgoMS: 700, What: "refused"}, {AgoMS: 900, What: "refused"}}
	if diff := cmp.Diff(want, h.of("a", time.Second)); diff != "" {
		t.Fatalf("want -, got +:\n%s", diff)
	}
	if got := h.of("b", time.Second); len(got) != maxHistory-2 {
		t.Fatalf("%d are kept", len(got))
	}
}

package httpapi

import (
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

// data §2, issue 4
func TestTheIDOfAnEventNamesTheRowAndIsWhatAClientComesBackWith(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m)
	l := listen(t, base, "/api/watch/acme/a")
	l.want(": open")
	l.want("event: full\nid: 3\n") // one without a stamp
	m.feed <- Frame{Kind: Patch, Version: 4, Stamp: "k3f9x2a1", BasedOn: 3, Patch: node.RawContent(`{"name":"A"}`)}
	l.want("event: patch\nid: 4.k3f9x2a1\ndata: {\"version\":4,\"basedOn\":3,")
	m.feed <- Frame{Kind: Deleted, Version: 5, Stamp: "0"}
	l.want("event: deleted\nid: 5.0\ndata: {\"version\":5}\n")
	m.feed <- Frame{Kind: Full, Version: 6, Stamp: "k3f9x2b7", Node: doc("acme/a", 6)}
	l.want("event: full\nid: 6.k3f9x2b7\ndata: {\"version\":6,\"node\":")
	l.close()

	for id, want := range map[string]Held{
		"6.k3f9x2b7": {Version: 6, Stamp: "k3f9x2b7"}, "5.0": {Version: 5, Stamp: "0"}, "6.-k3": {Version: 6, Stamp: "-k3"},
		"6": {Version: 6}, "": {}, "0.k3f9x2b7": {}, "-6.k3": {}, "6.": {}, "6.K3": {}, "6.0k3": {}, "6.k3.x": {}, "6.!": {}, "+6.k3": {}, "06": {}, "6.zzzzzzzzzzzzzzz": {}, "x.k3": {},
	} {
		other := listen(t, base, "/api/watch/acme/a", "Last-Event-ID", id)
		other.want(": open")
		other.want("event: full\nid: 3\n")
		other.close()
		m.mu.Lock()
		got := m.resumed
		m.mu.Unlock()
		if got != want {
			t.Errorf("%q is held as %+v, want %+v", id, got, want)
		}
	}
}

// data §2
func FuzzAnIDIsReadAsItWasWrittenOrNotAtAll(f *testing.F) {
	for _, id := range []string{"5", "5.k3f9x2a1", "5.0", "5.-1", "+5", "05.k3", "5.K3", "5.", ".5", "5.1.2", "9223372036854775807.1y2p0ij32e8e7", "1y"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		held := resumedFrom(id)
		if held.Version < 0 || held.Version == 0 && held.Stamp != "" {
			t.Fatalf("%q is %+v", id, held)
		}
		if again := resumedFrom(eventID(Frame{Version: held.Version, Stamp: held.Stamp})); again != held {
			t.Fatalf("%q is %+v, and written again %+v", id, held, again)
		}
	})
}

package transporttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runHandshake(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("a peer of another wire version is refused by both with one line and a typed error", func(b bench) {
		a := b.open("a", 0xa1)
		c := b.open("b", 0xb1, func(_ *transport.Config, version *uint16) { *version = 7 })
		for dialler, to := range map[node]node{a: c, c: a} {
			err := dialler.connect(b.t, to.self)
			var version *transport.VersionError
			if !errors.As(err, &version) || version.Ours+version.Theirs != 8 {
				b.t.Fatal(err)
			}
			notSent(b.t, dialler.ask(b.t, to.self, transport.Write, "x").Err, transport.Refused)
		}
		oneLine(b.t, a, "wire version 0.1 here, 0.7 there")
		oneLine(b.t, c, "wire version 0.7 here, 0.1 there")
	})
	s.Run("a peer of another cluster is refused by both with one line and a typed error", func(b bench) {
		a := b.open("a", 0xa1)
		c := b.open("b", 0xb1, func(cfg *transport.Config, _ *uint16) { cfg.Cluster = "other" })
		err := a.connect(b.t, c.self)
		var cluster *transport.ClusterError
		if !errors.As(err, &cluster) || cluster.Ours != "test" || cluster.Theirs != "other" {
			b.t.Fatal(err)
		}
		oneLine(b.t, a, `cluster "test" here, "other" there`)
		oneLine(b.t, c, `cluster "other" here, "test" there`)
	})
	s.Run("a connection for another incarnation is refused in the handshake", func(b bench) { // fault 6
		a, c := b.pair()
		to := c.self
		to.Epoch = 0xdead
		err := a.connect(b.t, to)
		var epoch *transport.EpochError
		if !errors.As(err, &epoch) || epoch.Want != 0xdead || epoch.Have != 0xb1 {
			b.t.Fatal(err)
		}
		a.answered(b.t, c.self, "x")
		if len(c.h.accepted) != 1 {
			b.t.Fatal("the refused connection was announced")
		}
	})
	s.Run("all who ask for a connection share one dial", func(b bench) {
		a, c := b.pair()
		done := make(chan error, 100)
		for range 100 {
			a.Connect(c.self, func(err error) { done <- err })
		}
		for range 100 {
			if err := wait(b.t, "a connect", done); err != nil {
				b.t.Fatal(err)
			}
		}
		a.answered(b.t, c.self, "x")
		if s := a.stats(0xb1); s.Dials != 1 || s.Reconnects != 0 || len(c.h.accepted) != 1 {
			b.t.Fatalf("%+v, %d accepted", s, len(c.h.accepted))
		}
	})
}

// oneLine waits until the silo has logged that sentence, in one line and no other.
func oneLine(t *testing.T, n node, sentence string) {
	t.Helper()
	n.Close(t.Context())
	lines := n.log.all()
	found := 0
	for _, line := range lines {
		if strings.Contains(line, sentence) {
			found++
		}
	}
	if found == 0 || found > 2 { // one as the dialler, one as the accepter
		t.Fatalf("%d lines say %q:\n%s", found, sentence, strings.Join(lines, "\n"))
	}
}

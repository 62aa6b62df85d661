package meshtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// issue 3: one frozen silo in the view delays no answer by more than the locate bound
func TestANodeThatAHealthySiloServesIsFoundBesideAFrozenOwnerOfItsSlot(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		var paths []node.Path
		c.create(t, "acme")
		for i := range 8 {
			p := fmt.Sprint("acme/n", i)
			c.create(t, p)
			if _, err := c.Silo("s1").Nodes.Patch(system(t), node.Path(p), []byte(`{"name":"w"}`), nodehub.Condition{}); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, node.Path(p))
		}
		c.Network.Hold("s2")
		frozen := 0
		for _, p := range paths {
			c.Silo("s0").Router.Do(func(s *cluster.Silo) {
				if m, _ := s.Table().OwnerOf(string(p)); m.Name == "s2" {
					frozen++
				}
			})
			begin := time.Now()
			if _, err := c.Silo("s0").Nodes.Get(system(t), p); err != nil || time.Since(begin) > 600*time.Millisecond {
				t.Errorf("%s after %v: %v", p, time.Since(begin), err)
			}
		}
		if frozen == 0 {
			t.Error("no slot of these nodes is the frozen silo's")
		}
		c.Network.Release("s2")
	})
}

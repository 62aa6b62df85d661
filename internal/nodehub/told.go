package nodehub

import (
	"context"

	"github.com/hubmesh/hubmesh/internal/node"
)

// maxTold is of how many nodes the other silos are told one by one; of more they are told that any may have changed.
const maxTold = 256

// tell has the other silos take note that nodes were deleted or replaced without their hubs, before that is
// acknowledged: whoever owns one of them on another silo would answer as before until the change feed has come
// there. The commit stands whatever is observed, and nobody waits longer than the bound: the silos that may still answer
// as before are returned, with why. docs/decisions/deletions-of-other-silos.md.
func (s *Service) tell(ctx context.Context, paths []node.Path) []string {
	if s.others == nil || len(paths) == 0 {
		return nil
	}
	told := paths
	if len(told) > maxTold {
		told = nil
	}
	untold := s.others(ctx, told)
	for _, why := range untold {
		s.log.Warn("a silo was not told in time of what was deleted or replaced; it may answer as before until the change feed has come there", "nodes", len(paths), "observed", why)
	}
	return untold
}

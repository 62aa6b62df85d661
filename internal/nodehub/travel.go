package nodehub

import (
	"slices"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Wire are the messages of node hubs that travel between silos. Creates, deletes and imports are asked of
// the operations hub of the caller's own process.
func Wire() []hub.WireType {
	return []hub.WireType{Get.Wire(), Patch.Wire(), Put.Wire(), Collections.Wire()}
}

// Causes are the errors that reach callers of node hubs on other silos.
func Causes() []message.Cause {
	return slices.Concat([]message.Cause{
		message.CauseOf[SchemaError]("node/schema"), message.CauseOf[TypeError]("node/type"), message.CauseOf[RuleError]("node/rule"),
		message.CauseOf[ChildrenError]("node/children"), message.CauseOf[SubtreeError]("node/subtree"),
		message.CauseOf[node.FieldError]("node/field"), message.CauseOf[node.ContentError]("node/content"),
		message.CauseOf[node.PathError]("node/path"), message.CauseOf[budget.Lapse]("budget/lapse"), message.CauseOf[budget.TooSmall]("budget/too-small"),
	}, access.Causes(), store.Causes())
}

package store

import "github.com/hubmesh/hubmesh/internal/message"

// Causes are the errors of stores that reach callers on other silos.
func Causes() []message.Cause {
	return []message.Cause{
		message.CauseOf[NotFoundError]("store/not-found"), message.CauseOf[ExistsError]("store/exists"), message.CauseOf[ConflictError]("store/conflict"),
		message.CauseOf[PartitionError]("store/partition"), message.CauseOf[GroundError]("store/ground"), message.CauseOf[NotEmptyError]("store/not-empty"), message.CauseOf[RowError]("store/row"), message.CauseOf[UnavailableError]("store/unavailable"),
		message.CauseOf[OutcomeUnknownError]("store/outcome-unknown"), message.CauseOf[ScanLimitError]("store/scan-limit"),
		message.CauseIs("store/overloaded", ErrOverloaded), message.CauseIs("store/closed", ErrClosed),
	}
}

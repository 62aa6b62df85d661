package access

import "github.com/hubmesh/hubmesh/internal/message"

// Causes are the errors of permissions that reach callers on other silos.
func Causes() []message.Cause {
	return []message.Cause{
		message.CauseOf[DeniedError]("access/denied"), message.CauseOf[UndeterminedError]("access/undetermined"),
		message.CauseOf[LastAdminError]("access/last-admin"), message.CauseOf[SubjectError]("access/subject"),
	}
}

package access

import (
	"fmt"

	"github.com/hubmesh/hubmesh/internal/node"
)

// DeniedError says that Subject lacks Need at Path. Whoever may not read the path must not be told so:
// to them it is answered like an absent node.
type DeniedError struct {
	Subject Subject
	Path    node.Path
	Need    Permission
}

func (e *DeniedError) Error() string {
	who := e.Subject
	if who == "" {
		who = Anonymous
	}
	return fmt.Sprintf("%s lacks %s on '%s'", who, e.Need, e.Path)
}

// UndeterminedError says that the permissions at Path can not be decided for the moment. It is transient.
type UndeterminedError struct{ Path node.Path }

func (e *UndeterminedError) Error() string {
	return fmt.Sprintf("the permissions on '%s' are not known for the moment: the assignments, or their changes, could not be read yet; try again", e.Path)
}

// LastAdminError says that a change would leave the root scope without an Admin who can sign in.
type LastAdminError struct {
	Path node.Path
	// Left would still be Admin, but none of them has a token or a session; nil where nobody would be.
	Left []Subject
}

func (e *LastAdminError) Error() string {
	if len(e.Left) == 0 {
		return fmt.Sprintf("'%s' holds the last Admin of the root scope: grant another one first", e.Path)
	}
	return fmt.Sprintf("'%s' holds the last Admin of the root scope who can sign in: make a token for another one first, such as for '%s'", e.Path, e.Left[0])
}

package hubmesh_test

import (
	"os"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/content"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// The members of a problem are the error's own; the page of errors is made from a table that does not know them.
func TestThePageOfErrorsNamesTheMembersOfEachProblem(t *testing.T) {
	page, err := os.ReadFile("docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []interface {
		ProblemCode() string
		ProblemMembers() map[string]any
	}{
		&content.Unreachable{}, &content.CollectionError{}, &content.CollectionError{Broken: true}, &content.UnpublishedError{}, &content.FolderError{},
		&nodehub.SchemaError{Reason: "x"}, &nodehub.PartialDeleteError{},
	} {
		_, section, _ := strings.Cut(string(page), "\n## "+e.ProblemCode()+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for name := range e.ProblemMembers() {
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%T: '%s' does not name the member `%s`", e, e.ProblemCode(), name)
			}
		}
	}
}

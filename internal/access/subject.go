package access

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// Subject is who asks: the id of a user, or one of the three below. The zero value is Anonymous. Ids
// are case-sensitive.
type Subject string

// The subjects that are nobody's account.
const (
	Anonymous Subject = message.SubjectAnonymous // a visitor; does not inherit Public
	Public    Subject = message.SubjectPublic    // every authenticated subject
	System    Subject = message.SubjectSystem    // the mesh itself; holds everything
)

// Authenticated tells whether s is somebody in particular.
func (s Subject) Authenticated() bool { return s != "" && s != Anonymous && s != Public && s != System }

// MaxSubjectBytes bounds the id of a subject.
const MaxSubjectBytes = 200

// SubjectError says why a text can not be the id of somebody's account.
type SubjectError struct{ Subject, Reason string }

func (e *SubjectError) Error() string {
	return fmt.Sprintf("invalid subject %q: %s", e.Subject, e.Reason)
}

// ParseSubject checks the id of an account, for whoever issues credentials: the reserved subjects are
// refused, so that no token can ever speak as the mesh itself, and so are names that look like another one.
func ParseSubject(text string) (Subject, error) {
	reason := ""
	switch {
	case text == "":
		reason = "it is empty"
	case len(text) > MaxSubjectBytes:
		reason = fmt.Sprintf("it has %d bytes; %d are allowed", len(text), MaxSubjectBytes)
	case !utf8.ValidString(text):
		reason = "it is not valid UTF-8"
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '/' || r == '\\' }):
		reason = "it holds a '/', a '\\' or a control character"
	case strings.TrimSpace(text) != text:
		reason = "it begins or ends with white space"
	}
	if r, what := node.Unseen(text); what != "" && reason == "" {
		reason = fmt.Sprintf("it holds U+%04X, %s", r, what)
	}
	for _, reserved := range []Subject{Anonymous, Public, System} {
		if strings.EqualFold(text, string(reserved)) {
			reason = "the name is reserved"
		}
	}
	if reason != "" {
		return "", &SubjectError{Subject: text, Reason: reason}
	}
	return Subject(text), nil
}

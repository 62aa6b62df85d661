package query

import (
	"strconv"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// fieldKind says how the values of a field compare.
type fieldKind uint8

const (
	kindText    fieldKind = iota // in any letter case
	kindExact                    // paths and types: letter case counts
	kindNumber                   // whole numbers
	kindTime                     // times
	kindState                    // names of states
	kindContent                  // a member of the content
)

// field is a field of a node, or a member of its content.
type field struct {
	name   string
	kind   fieldKind
	member []string // for kindContent
}

var fields = func() map[string]field {
	all := map[fieldKind][]string{
		kindText: {"name", "description", "category", "icon", "preRenderedHtml", "createdBy", "lastModifiedBy",
			"desiredId", "excludeFromContext", "syncBehavior"},
		kindExact:  {"path", "id", "namespace", "mainNode", "nodeType"},
		kindNumber: {"order", "version"},
		kindTime:   {"createdDate", "lastModified"},
		kindState:  {"state"},
	}
	byName := map[string]field{}
	for kind, names := range all {
		for _, name := range names {
			byName[strings.ToLower(name)] = field{name: name, kind: kind}
		}
	}
	return byName
}()

// fieldNamed finds a field of nodes in any letter case; every other name is a member of the content,
// where dots go deeper. "content." in front makes a member of a name that nodes have, too.
func fieldNamed(name string) field {
	if f, ok := fields[strings.ToLower(name)]; ok {
		return f
	}
	member := name
	if rest, ok := strings.CutPrefix(name, "content."); ok {
		member = rest
	}
	f := field{name: name, kind: kindContent}
	if member != "content" {
		f.member = strings.Split(member, ".")
	}
	return f
}

// needsContent tells whether a selected field is in the content.
func needsContent(name string) bool { return fieldNamed(name).kind == kindContent }

// scalar is one value of a field.
type scalar struct {
	kind scalarKind
	text string
	at   time.Time // for isTime
}

type scalarKind uint8

const (
	isAbsent scalarKind = iota
	isNumber
	isText
	isBool
	isTime
	isOther // an object or array of the content
)

// each yields the values of the field: none where it is absent, several for a list.
func (f field) each(n *node.Node, yield func(scalar) bool) {
	text := func(s string) {
		if s != "" {
			yield(scalar{kind: isText, text: s})
		}
	}
	moment := func(t time.Time) {
		if !t.IsZero() {
			yield(scalar{kind: isTime, at: t, text: t.UTC().Format(time.RFC3339Nano)})
		}
	}
	switch f.name {
	case "path":
		text(string(n.Path))
	case "id":
		text(n.Path.ID())
	case "namespace":
		text(string(n.Path.Namespace()))
	case "mainNode":
		text(string(n.MainNode))
	case "nodeType":
		text(n.NodeType)
	case "name":
		text(n.Name)
	case "description":
		text(n.Description)
	case "category":
		text(n.Category)
	case "icon":
		text(n.Icon)
	case "preRenderedHtml":
		text(n.PreRenderedHTML)
	case "createdBy":
		text(n.CreatedBy)
	case "lastModifiedBy":
		text(n.ModifiedBy)
	case "desiredId":
		text(n.DesiredID)
	case "syncBehavior":
		text(n.SyncBehavior.String())
	case "state":
		text(n.State.String())
	case "excludeFromContext":
		for _, context := range n.ExcludeFromContext {
			if !yield(scalar{kind: isText, text: context}) {
				return
			}
		}
	case "order":
		if n.Order != nil {
			yield(scalar{kind: isNumber, text: strconv.Itoa(*n.Order)})
		}
	case "version":
		yield(scalar{kind: isNumber, text: strconv.FormatInt(n.Version, 10)})
	case "createdDate":
		moment(n.CreatedAt)
	case "lastModified":
		moment(n.ModifiedAt)
	default:
		f.eachMember(n, yield)
	}
}

func (f field) eachMember(n *node.Node, yield func(scalar) bool) {
	for v := range n.Content.Lookup(f.member) {
		var s scalar
		switch v.Kind() {
		case node.ValueNull:
			continue
		case node.ValueNumber:
			s = scalar{kind: isNumber, text: v.Raw()}
		case node.ValueBool:
			s = scalar{kind: isBool, text: v.Raw()}
		case node.ValueText:
			s = scalar{kind: isText, text: v.Text()}
		default:
			s = scalar{kind: isOther, text: v.Raw()}
		}
		if !yield(s) {
			return
		}
	}
}

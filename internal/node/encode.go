package node

import (
	"strconv"
	"time"
)

// MarshalJSON writes the public form of a node (docs/api.md). Empty fields are left out; state is
// always there.
func (n Node) MarshalJSON() ([]byte, error) { return n.AppendJSON(nil), nil }

// AppendJSON appends the public form of the node to dst. Unlike json.Marshal it does not check the
// content again.
func (n Node) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.text("path", string(n.Path))
	w.text("id", n.Path.ID())
	w.text("namespace", string(n.Path.Namespace()))
	w.text("mainNode", string(n.MainNode))
	w.text("nodeType", n.NodeType)
	w.text("name", n.Name)
	w.text("description", n.Description)
	w.text("category", n.Category)
	w.text("icon", n.Icon)
	if n.Order != nil {
		w.number("order", int64(*n.Order))
	}
	w.text("preRenderedHtml", n.PreRenderedHTML)
	if !n.Content.IsZero() {
		w.name("content")
		w.dst = append(w.dst, n.Content.text...)
	}
	if n.Version != 0 {
		w.number("version", n.Version)
	}
	w.text("state", n.State.String())
	w.time("createdDate", n.CreatedAt)
	w.text("createdBy", n.CreatedBy)
	w.time("lastModified", n.ModifiedAt)
	w.text("lastModifiedBy", n.ModifiedBy)
	w.text("desiredId", n.DesiredID)
	if len(n.ExcludeFromContext) > 0 {
		w.name("excludeFromContext")
		for i, context := range n.ExcludeFromContext {
			w.dst = appendText(append(w.dst, "[,"[min(i, 1)]), context)
		}
		w.dst = append(w.dst, ']')
	}
	if n.SyncBehavior != SyncInclude {
		w.text("syncBehavior", n.SyncBehavior.String())
	}
	return append(w.dst, '}')
}

// objectWriter writes the members of one object.
type objectWriter struct {
	dst   []byte
	begun bool
}

func (w *objectWriter) name(name string) {
	if w.begun {
		w.dst = append(w.dst, ',')
	}
	w.begun = true
	w.dst = append(appendText(w.dst, name), ':')
}

// text writes a text member, unless it is empty.
func (w *objectWriter) text(name, text string) {
	if text != "" {
		w.name(name)
		w.dst = appendText(w.dst, text)
	}
}

func (w *objectWriter) number(name string, number int64) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, number, 10)
}

// timeForm is RFC 3339 in UTC; microseconds, without trailing zeros.
const timeForm = "2006-01-02T15:04:05.999999Z07:00"

// time writes a time member, unless it is zero.
func (w *objectWriter) time(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.dst = append(w.dst, '"')
		w.dst = t.UTC().AppendFormat(w.dst, timeForm)
		w.dst = append(w.dst, '"')
	}
}

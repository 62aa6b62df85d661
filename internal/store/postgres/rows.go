package postgres

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// fields are the columns of a version of a node behind its path, in the order of row.scan.
var fields = []string{
	"main_node", "version", "kind", "state", "sync_behavior", "node_type", "name", "description", "category", "icon", "display_order",
	"created_at", "created_by", "modified_at", "modified_by", "desired_id", "exclude_from_context", "prerendered_html", "content",
}

// columns lists path and fields of a table expression; light leaves the content out.
func columns(of string, light bool) string {
	list := make([]string, 0, len(fields)+1)
	for _, f := range append([]string{"path"}, fields...) {
		if light && f == "content" {
			list = append(list, "null::json as content")
			continue
		}
		list = append(list, of+"."+f)
	}
	return strings.Join(list, ", ")
}

// blanks is columns for a row that may be missing: texts and numbers come as empty.
func blanks(list string) string {
	parts := strings.Split(list, ", ")
	for i, p := range parts {
		switch name := strings.TrimPrefix(p, "n."); name {
		case "display_order", "created_at", "modified_at", "exclude_from_context", "content", "null::json as content":
		case "version", "kind", "state", "sync_behavior":
			parts[i] = "coalesce(" + p + ", 0)"
		default:
			parts[i] = "coalesce(" + p + ", '')"
		}
	}
	return strings.Join(parts, ", ")
}

// row receives one row of columns.
type row struct {
	node node.Node
	kind store.ChangeKind

	path, main           string
	state, sync, kindOf  int16
	order                *int64
	createdAt, changedAt *time.Time
	exclude, content     *string
}

// into lists where the columns go.
func (r *row) into() []any {
	n := &r.node
	*n = node.Node{}
	return []any{&r.path, &r.main, &n.Version, &r.kindOf, &r.state, &r.sync, &n.NodeType, &n.Name, &n.Description, &n.Category, &n.Icon, &r.order,
		&r.createdAt, &n.CreatedBy, &r.changedAt, &n.ModifiedBy, &n.DesiredID, &r.exclude, &n.PreRenderedHTML, &r.content}
}

// scan reads one row, behind further columns.
func (r *row) scan(rows pgx.Row, before ...any) error {
	if err := rows.Scan(append(before, r.into()...)...); err != nil {
		return err
	}
	return r.finish()
}

func (r *row) finish() error {
	n := &r.node
	n.Path, n.MainNode = node.Path(r.path), node.Path(r.main)
	r.kind = store.ChangeKind(r.kindOf)
	n.State, n.SyncBehavior = node.State(r.state), node.SyncBehavior(r.sync)
	if r.order != nil {
		order := int(*r.order)
		n.Order = &order
	}
	n.CreatedAt, n.ModifiedAt = timeOf(r.createdAt), timeOf(r.changedAt)
	if r.exclude != nil {
		// Another program may have written anything: what is no list of texts excludes from nothing.
		if json.Unmarshal([]byte(*r.exclude), &n.ExcludeFromContext) != nil {
			n.ExcludeFromContext = nil
		}
	}
	if r.content != nil {
		n.Content = node.RawContent(*r.content)
	}
	return nil
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func stampOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// lists are the columns of some writes, each an array parameter of a statement.
type lists struct {
	path, folded, main                          []string
	expected, version                           []int64
	state, sync                                 []int16
	nodeType, name, description, category, icon []string
	order                                       []*int64
	createdAt, modifiedAt, upon                 []*time.Time // upon: what must have been there
	createdBy, modifiedBy, desired, prerendered []string
	exclude, content                            []*string
	ground                                      []*string    // of a create: what it stands on
	born                                        []*time.Time // of the ground
	low, high                                   []*string    // of a delete that is to be empty: the keys below it
}

func (l *lists) add(w store.Write) {
	n := w.Node
	l.path = append(l.path, string(n.Path))
	l.folded = append(l.folded, tables.Key(node.Path(n.Path.Fold())))
	l.main = append(l.main, string(n.MainNode))
	l.expected, l.version = append(l.expected, w.Expected), append(l.version, n.Version)
	l.state, l.sync = append(l.state, int16(n.State)), append(l.sync, int16(n.SyncBehavior))
	l.nodeType, l.name, l.description = append(l.nodeType, n.NodeType), append(l.name, n.Name), append(l.description, n.Description)
	l.category, l.icon = append(l.category, n.Category), append(l.icon, n.Icon)
	var order *int64
	if n.Order != nil {
		value := int64(*n.Order)
		order = &value
	}
	l.order = append(l.order, order)
	l.createdAt, l.modifiedAt = append(l.createdAt, stampOf(n.CreatedAt)), append(l.modifiedAt, stampOf(n.ModifiedAt))
	l.upon = append(l.upon, stampOf(w.ExpectedAt))
	l.createdBy, l.modifiedBy = append(l.createdBy, n.CreatedBy), append(l.modifiedBy, n.ModifiedBy)
	l.desired, l.prerendered = append(l.desired, n.DesiredID), append(l.prerendered, n.PreRenderedHTML)
	var exclude, content *string
	if len(n.ExcludeFromContext) > 0 {
		text, _ := json.Marshal(n.ExcludeFromContext) // of texts: cannot fail
		exclude = new(string(text))
	}
	if !n.Content.IsZero() {
		content = new(n.Content.Text())
	}
	l.exclude, l.content = append(l.exclude, exclude), append(l.content, content)
	l.surround(w)
}

// surround adds what a write asks of other nodes.
func (l *lists) surround(w store.Write) {
	var ground, low, high *string
	if w.Ground.Path != "" && w.Op == store.OpCreate {
		ground = new(string(w.Ground.Path))
	}
	if w.Empty && w.Op == store.OpDelete {
		from, to := tables.Below(w.Node.Path)
		low, high = &from, &to
	}
	l.ground, l.born = append(l.ground, ground), append(l.born, stampOf(w.Ground.Born))
	l.low, l.high = append(l.low, low), append(l.high, high)
}

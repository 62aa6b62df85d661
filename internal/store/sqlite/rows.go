package sqlite

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// columns of a version of a node, in the order of rowArgs and row.scan. The content comes last, so
// that SQLite reads the pages it overflows into only when it is asked for.
const columns = "key, main, version, kind, state, sync, node_type, name, description, category, icon, ord, " +
	"created_at, created_by, modified_at, modified_by, desired_id, exclude, prerendered, content"

// lightColumns leave the content out.
var lightColumns = strings.TrimSuffix(columns, "content") + "null"

// The same, of the table expression n.
var (
	nodeColumns      = "n." + strings.ReplaceAll(columns, ", ", ", n.")
	nodeLightColumns = strings.TrimSuffix(nodeColumns, "n.content") + "null"
)

// rowArgs returns the values of columns for n, without the key.
func rowArgs(n node.Node, kind store.ChangeKind) []any {
	var main, order, exclude, content any
	if n.MainNode != n.Path {
		main = tables.Key(n.MainNode)
	}
	if n.Order != nil {
		order = int64(*n.Order)
	}
	if len(n.ExcludeFromContext) > 0 {
		list, _ := json.Marshal(n.ExcludeFromContext) // of texts: cannot fail
		exclude = string(list)
	}
	if !n.Content.IsZero() {
		content = n.Content.Text()
	}
	return []any{
		main, n.Version, int64(kind), int64(n.State), int64(n.SyncBehavior), n.NodeType, n.Name, n.Description, n.Category, n.Icon, order,
		microsOf(n.CreatedAt), n.CreatedBy, microsOf(n.ModifiedAt), n.ModifiedBy, n.DesiredID, exclude, n.PreRenderedHTML, content,
	}
}

func microsOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func timeOf(micros any) time.Time {
	if us, ok := micros.(int64); ok {
		return time.UnixMicro(us).UTC()
	}
	return time.Time{}
}

// row receives one row of columns.
type row struct {
	node node.Node
	kind store.ChangeKind

	key                                       string
	main, version, kindOf, state, sync, order any
	createdAt, modifiedAt, exclude, content   any
}

// scan reads one row; from is sql.Row.Scan or sql.Rows.Scan.
func (r *row) scan(from func(...any) error) error {
	n := &r.node
	*n = node.Node{}
	err := from(&r.key, &r.main, &r.version, &r.kindOf, &r.state, &r.sync, &n.NodeType, &n.Name, &n.Description, &n.Category, &n.Icon, &r.order,
		&r.createdAt, &n.CreatedBy, &r.modifiedAt, &n.ModifiedBy, &n.DesiredID, &r.exclude, &n.PreRenderedHTML, &r.content)
	if err != nil {
		return err
	}
	n.Path = tables.Path(r.key)
	n.MainNode = n.Path
	if main, ok := r.main.(string); ok {
		n.MainNode = tables.Path(main)
	}
	n.Version = number(r.version)
	r.kind = store.ChangeKind(number(r.kindOf))
	n.State = node.State(number(r.state))
	n.SyncBehavior = node.SyncBehavior(number(r.sync))
	if order, ok := r.order.(int64); ok {
		value := int(order)
		n.Order = &value
	}
	n.CreatedAt, n.ModifiedAt = timeOf(r.createdAt), timeOf(r.modifiedAt)
	if list, ok := r.exclude.(string); ok {
		if err := json.Unmarshal([]byte(list), &n.ExcludeFromContext); err != nil {
			return err
		}
	}
	if content, ok := r.content.(string); ok {
		n.Content = node.RawContent(content)
	}
	return nil
}

func number(v any) int64 {
	i, _ := v.(int64)
	return i
}

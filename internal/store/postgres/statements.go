package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// list is one array parameter of a statement: its column there, its type, its values.
type list struct {
	name, of string
	values   any
}

// unnest writes the lists as a table expression and returns their values; the first has number from.
func unnest(from int, all []list) (text string, args []any) {
	var places, names []string
	for i, l := range all {
		places = append(places, fmt.Sprintf("$%d::%s[]", from+i, l.of))
		names = append(names, l.name)
		args = append(args, l.values)
	}
	return fmt.Sprintf("select * from unnest(%s) as i(%s)", strings.Join(places, ", "), strings.Join(names, ", ")), args
}

// written are the lists of a create or an update.
func (l *lists) written() []list {
	return []list{
		{"path", "text", l.path}, {"folded", "text", l.folded}, {"expected", "bigint", l.expected}, {"main_node", "text", l.main}, {"version", "bigint", l.version},
		{"state", "smallint", l.state}, {"sync_behavior", "smallint", l.sync}, {"node_type", "text", l.nodeType}, {"name", "text", l.name},
		{"description", "text", l.description}, {"category", "text", l.category}, {"icon", "text", l.icon}, {"display_order", "bigint", l.order},
		{"created_at", "timestamptz", l.createdAt}, {"created_by", "text", l.createdBy}, {"modified_at", "timestamptz", l.modifiedAt},
		{"modified_by", "text", l.modifiedBy}, {"desired_id", "text", l.desired}, {"exclude_from_context", "text", l.exclude},
		{"prerendered_html", "text", l.prerendered}, {"content", "text", l.content},
	}
}

// removed are the lists of a delete.
func (l *lists) removed() []list {
	return []list{
		{"path", "text", l.path}, {"expected", "bigint", l.expected}, {"version", "bigint", l.version},
		{"modified_at", "timestamptz", l.modifiedAt}, {"modified_by", "text", l.modifiedBy},
	}
}

// Every statement takes the origin as $1, comes to its rows in the order of the lists, which is that of the
// paths, and answers with the rows that it wrote. The change rows come from those, so that a row's position is
// taken under its lock.
var (
	createText = statement(new(lists).written(), `
ok as (
  select i.* from i join mesh_partitions p on p.name = split_part(i.path, '/', 1) collate "C" and not p.deleting
  left join mesh_tombstones t on t.path = i.path collate "C"
  where i.version > coalesce(t.version, 0)),
ins as (
  insert into mesh_nodes (path, folded, `+strings.Join(fields, ", ")+`)
  select path, folded, main_node, version, 1, state, sync_behavior, node_type, name, description, category, icon, display_order,
    created_at, created_by, modified_at, modified_by, desired_id, exclude_from_context::json, prerendered_html, content::json
  from ok order by path collate "C" on conflict do nothing
  returning path, version, node_type),
ch as (
  insert into mesh_changes (version, op, path, node_type, origin) select version, 'I', path, node_type, $1 from ins)
select path from ins`)

	// The row that is superseded is read beside the one that is replaced: both have the expected version, so
	// they are one.
	updateText = statement(new(lists).written(), `
upd as (
  update mesh_nodes n set main_node = i.main_node, version = i.version, kind = 2, state = i.state, sync_behavior = i.sync_behavior,
    node_type = i.node_type, name = i.name, description = i.description, category = i.category, icon = i.icon,
    display_order = i.display_order, modified_at = i.modified_at, modified_by = i.modified_by, desired_id = i.desired_id,
    exclude_from_context = i.exclude_from_context::json, prerendered_html = i.prerendered_html, content = i.content::json
  from i join mesh_nodes old on old.path = i.path collate "C" and old.version = i.expected
  join mesh_partitions p on p.name = old.partition and not p.deleting
  where n.path = i.path collate "C" and n.version = i.expected and i.version > i.expected
  returning `+columns("old", false)+`, n.version as new_version, n.node_type as new_type),
hist as (
  insert into mesh_node_history (path, `+strings.Join(fields, ", ")+`) select `+columns("upd", false)+` from upd),
ch as (
  insert into mesh_changes (version, op, path, node_type, origin) select new_version, 'U', path, new_type, $1 from upd)
select path, created_at, created_by from upd`)

	deleteText = statement(new(lists).removed(), `
gone as (
  delete from mesh_nodes n using i
  where n.path = i.path collate "C" and (i.expected < 0 or n.version = i.expected) and i.version > n.version
  returning `+columns("n", false)+`, i.version as last, i.modified_at as gone_at, i.modified_by as gone_by),
hist as (
  insert into mesh_node_history (path, `+strings.Join(fields, ", ")+`)
  select `+columns("gone", false)+` from gone
  union all
  select path, path, last, 3, 0, 0, '', name, '', '', '', null, null, '', gone_at, gone_by, '', null, '', null from gone),
tomb as (
  insert into mesh_tombstones (path, version) select path, last from gone
  on conflict (path) do update set version = excluded.version),
ch as (
  insert into mesh_changes (version, op, path, node_type, origin) select last, 'D', path, node_type, $1 from gone)
select `+columns("gone", false)+` from gone`)
)

// statement puts the table of the parameters before a text.
func statement(of []list, text string) string {
	in, _ := unnest(2, of)
	return "with i as materialized (" + in + ")," + text
}

const (
	// overtakenText ends a transaction in which a create stands at or below a tombstone that was not yet
	// there when its statement began: the rows are claimed now, and nobody deletes them.
	overtakenText = `select mesh_refuse(t.path) from mesh_tombstones t
join unnest($1::text[], $2::bigint[]) as i(path, version) on t.path = i.path collate "C" and t.version >= i.version
join mesh_nodes n on n.path = t.path and n.version = i.version`

	// pruneText keeps the newest $2 superseded versions of each path.
	pruneText = `delete from mesh_node_history h using unnest($1::text[]) as i(path)
where h.path = i.path collate "C" and h.version < (
  select o.version from mesh_node_history o where o.path = i.path collate "C" order by o.version desc offset $2 - 1 limit 1)`

	// explainText tells what stands in the way of a write.
	explainText = `select i.path, coalesce(f.path, ''), coalesce(f.version, 0), coalesce(t.version, 0), coalesce(p.name, ''), coalesce(p.deleting, false)
from unnest($1::text[], $2::text[], $3::text[]) as i(path, folded, partition)
left join mesh_nodes f on f.folded = i.folded collate "C"
left join mesh_tombstones t on t.path = i.path collate "C"
left join mesh_partitions p on p.folded = i.partition collate "C"`
)

// part is the writes of one operation in a batch, and where they stand in it.
type part struct {
	op    store.Op
	at    []int
	lists lists
}

// byPath finds the place of a path.
func (p *part) byPath() map[node.Path]int {
	m := make(map[node.Path]int, len(p.at))
	for i, path := range p.lists.path {
		m[node.Path(path)] = p.at[i]
	}
	return m
}

// queue adds the part's statement to a pipeline.
func (p *part) queue(b *pgx.Batch, origin string) {
	text, of := createText, p.lists.written()
	switch p.op {
	case store.OpUpdate:
		text = updateText
	case store.OpDelete:
		text, of = deleteText, p.lists.removed()
	}
	_, args := unnest(2, of)
	b.Queue(text, append([]any{origin}, args...)...)
	if p.op == store.OpCreate {
		b.Queue(overtakenText, p.lists.path, p.lists.version)
	}
}

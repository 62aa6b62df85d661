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
		{"prerendered_html", "text", l.prerendered}, {"content", "text", l.content}, {"upon", "timestamptz", l.upon},
	}
}

// created are the lists of a create.
func (l *lists) created() []list {
	return append(l.written(), list{"ground", "text", l.ground}, list{"born", "timestamptz", l.born})
}

// removed are the lists of a delete.
func (l *lists) removed() []list {
	return []list{
		{"path", "text", l.path}, {"expected", "bigint", l.expected}, {"version", "bigint", l.version},
		{"modified_at", "timestamptz", l.modifiedAt}, {"modified_by", "text", l.modifiedBy},
		{"low", "text", l.low}, {"high", "text", l.high}, {"upon", "timestamptz", l.upon},
	}
}

// Every statement takes the origin as $1, comes to its rows in the order of the lists, which is that of the
// paths, and answers with the rows that it wrote. The change rows come from those, so that a row's position is
// taken under its lock.
var (
	// The partitions and the ground are locked against their deletion, and looked at again where one came first:
	// the lock is that of a reference, which updates do not wait for.
	createText = statement(new(lists).created(), `
parts as materialized (
  select p.name from (select distinct split_part(path, '/', 1) as name from i) d
  join mesh_partitions p on p.name = d.name collate "C" and not p.deleting for key share of p),
grounds as materialized (
  select g.path from (select distinct ground, born from i where ground is not null order by ground) d
  join mesh_nodes g on g.path = d.ground collate "C" and g.created_at is not distinct from d.born for key share of g),
ok as (
  select i.* from i left join mesh_tombstones t on t.path = i.path collate "C"
  where i.version > coalesce(t.version, 0) and split_part(i.path, '/', 1) collate "C" in (select name from parts)
    and (i.ground is null or i.ground collate "C" in (select path from grounds))),
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
  where n.path = i.path collate "C" and n.version = i.expected and i.version > i.expected and (i.upon is null or n.modified_at = i.upon)
  returning `+columns("old", false)+`, n.version as new_version, n.node_type as new_type),
hist as (
  insert into mesh_node_history (path, `+strings.Join(fields, ", ")+`) select `+columns("upd", false)+` from upd),
ch as (
  insert into mesh_changes (version, op, path, node_type, origin) select new_version, 'U', path, new_type, $1 from upd)
select path, created_at, created_by from upd`)

	deleteText = statement(new(lists).removed(), `
gone as (
  delete from mesh_nodes n using i
  where n.path = i.path collate "C" and (i.expected < 0 or n.version = i.expected) and i.version > n.version and (i.upon is null or n.modified_at = i.upon)
    and (i.low is null or not exists (select 1 from mesh_nodes b where `+belowText+` and b.path not in (select unnest($10::text[]))))
  returning `+columns("n", false)+`, i.version as last, i.modified_at as gone_at, i.modified_by as gone_by),
hist as (
  insert into mesh_node_history (path, `+strings.Join(fields, ", ")+`)
  select `+columns("gone", false)+` from gone
  union all
  select path, path, last, 3, 0, 0, '', name, '', '', '', null, null, '', gone_at, gone_by, '', null, '', null from gone),
tomb as (
  insert into mesh_tombstones (path, version) select path, last from gone
  on conflict (path) do update set version = greatest(mesh_tombstones.version, excluded.version)),
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
	// belowText is true of what stands below a row i; low is null where nobody asks.
	belowText = `b.key > i.low collate "C" and b.key < i.high collate "C"`

	// holdText keeps what is to be deleted empty: whoever creates below it waits, or is seen by the next statement.
	holdText = `select from mesh_nodes where path = any($1::text[]) order by path for update`

	// overtakenText ends a transaction in which a create stands at or below a tombstone that was not yet
	// there when its statement began: the rows are claimed now, and nobody deletes them.
	overtakenText = `select mesh_refuse(t.path) from mesh_tombstones t
join unnest($1::text[], $2::bigint[]) as i(path, version) on t.path = i.path collate "C" and t.version >= i.version
join mesh_nodes n on n.path = t.path and n.version = i.version`

	// liftText raises rows that stand below an earlier life of their path above it, as a change of nobody's, so that
	// every process looks.
	liftText = `with low as (
  select n.path, greatest(h.version, t.version) + 1 as version from unnest($1::text[]) as i(path) join mesh_nodes n on n.path = i.path collate "C"
  left join lateral (select max(o.version) as version from mesh_node_history o where o.path = n.path) h on true
  left join mesh_tombstones t on t.path = n.path order by n.path),
up as (
  update mesh_nodes n set version = low.version from low where n.path = low.path and n.version < low.version returning n.path, n.version, n.node_type)
insert into mesh_changes (version, op, path, node_type) select version, 'U', path, node_type from up`

	// pruneText keeps the newest $2 superseded versions of each path.
	pruneText = `delete from mesh_node_history h using unnest($1::text[]) as i(path)
where h.path = i.path collate "C" and h.version < (
  select o.version from mesh_node_history o where o.path = i.path collate "C" order by o.version desc offset $2 - 1 limit 1)`

	// explainText tells what stands in the way of a write.
	explainText = `select i.path, coalesce(f.path, ''), coalesce(f.version, 0), f.modified_at, coalesce(t.version, 0), coalesce(p.name, ''), coalesce(p.deleting, false),
  i.ground is null or exists (select 1 from mesh_nodes g where g.path = i.ground collate "C" and g.created_at is not distinct from i.born),
  coalesce((select b.path from mesh_nodes b where ` + belowText + ` and b.path not in (select unnest($8::text[])) order by b.key limit 1), '')
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[]) as i(path, folded, partition, ground, born, low, high)
left join mesh_nodes f on f.folded = i.folded collate "C"
left join mesh_tombstones t on t.path = i.path collate "C"
left join mesh_partitions p on p.folded = i.partition collate "C"`
)

// part is the writes of one operation in a batch, and where they stand in it.
type part struct {
	op    store.Op
	at    []int
	lists lists
	spare []string // what may stand below a row that is to be empty
}

// add adds the write at a place of the batch.
func (p *part) add(i int, w store.Write) {
	p.at = append(p.at, i)
	p.lists.add(w)
	for _, path := range w.Spare {
		p.spare = append(p.spare, string(path))
	}
}

// held are the paths that are to be empty.
func (p *part) held() (paths []string) {
	for i, low := range p.lists.low {
		if p.op == store.OpDelete && low != nil {
			paths = append(paths, p.lists.path[i])
		}
	}
	return paths
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
	text, of := createText, p.lists.created()
	switch p.op {
	case store.OpUpdate:
		text, of = updateText, p.lists.written()
	case store.OpDelete:
		text, of = deleteText, p.lists.removed()
		if held := p.held(); len(held) > 0 {
			b.Queue(holdText, held)
		}
	}
	_, args := unnest(2, of)
	if args = append([]any{origin}, args...); p.op == store.OpDelete {
		args = append(args, p.spare)
	}
	b.Queue(text, args...)
	if p.op == store.OpCreate {
		b.Queue(overtakenText, p.lists.path, p.lists.version)
	}
}

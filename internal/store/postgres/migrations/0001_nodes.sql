-- One row: which server this database was made on, and up to where change rows have been pruned.
create table mesh_store (
  one           boolean primary key default true check (one),
  system_id     bigint not null,
  pruned_before xid8   not null default '0'
);
insert into mesh_store (system_id) select system_identifier from pg_control_system();

-- Which history of the server this is: it rises when a standby is promoted.
create function mesh_timeline() returns bigint language sql volatile as $$
  select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
$$;

create table mesh_partitions (
  name       text collate "C" primary key,
  folded     text collate "C" not null unique,      -- the name in folded letters: two never differ in case only
  deleting   boolean not null default false,
  created_at timestamptz not null default clock_timestamp(),
  created_by text not null default ''
);
insert into mesh_partitions (name, folded) values ('_Access', '_access');

-- The present version of each node. The columns from main_node on are the same in history.
create table mesh_nodes (
  path      text collate "C" primary key check (
    octet_length(path) between 1 and 1024 and path !~ '[[:cntrl:]\\~]' and path !~ '(^|/)(\.|\.\.)?(/|$)'),
  key       text collate "C" not null generated always as (replace(path, '/', E'\x01')) stored, -- its order is path order
  partition text collate "C" not null generated always as (split_part(path, '/', 1)) stored references mesh_partitions,
  folded    text collate "C" not null,              -- the path in folded letters: two nodes never differ in case only
  main_node            text collate "C" not null,   -- equal to the path: the node is its own
  version              bigint not null check (version between 1 and 4611686018427387904),
  kind                 smallint not null default 1, -- how this version came about: 1 created, 2 updated
  state                smallint not null default 2,
  sync_behavior        smallint not null default 0,
  node_type            text collate "C" not null default '' check (octet_length(node_type) <= 1024),
  name                 text not null default '',
  description          text not null default '',
  category             text not null default '',
  icon                 text not null default '',
  display_order        bigint,
  created_at           timestamptz check (isfinite(created_at)),
  created_by           text not null default '',
  modified_at          timestamptz check (isfinite(modified_at)),
  modified_by          text not null default '',
  desired_id           text not null default '',
  exclude_from_context json check (json_typeof(exclude_from_context) = 'array'),
  prerendered_html     text not null default '',
  content              json                         -- as it was written: numbers keep their spelling
) with (fillfactor = 85);
-- Not unique, although no two are the same: an update counts as one of every generated column, and one of a unique
-- column would wait for whoever holds the row as the ground of new nodes.
create index        mesh_nodes_key    on mesh_nodes (key);
create unique index mesh_nodes_folded on mesh_nodes (folded);
create index        mesh_nodes_type   on mesh_nodes (node_type, key);
create index        mesh_nodes_main   on mesh_nodes (main_node) where main_node <> path;

-- Superseded versions, and deletions (kind 3).
create table mesh_node_history (
  path                 text collate "C" not null,
  main_node            text collate "C" not null,
  version              bigint not null,
  kind                 smallint not null,
  state                smallint not null default 0,
  sync_behavior        smallint not null default 0,
  node_type            text collate "C" not null default '',
  name                 text not null default '',
  description          text not null default '',
  category             text not null default '',
  icon                 text not null default '',
  display_order        bigint,
  created_at           timestamptz,
  created_by           text not null default '',
  modified_at          timestamptz,
  modified_by          text not null default '',
  desired_id           text not null default '',
  exclude_from_context json,
  prerendered_html     text not null default '',
  content              json,
  primary key (path, version)
);

-- The last version of a path that has been deleted, so that a re-creation continues the count. It stays
-- when the path comes back, and when its partition goes.
create table mesh_tombstones (
  path    text collate "C" primary key,
  version bigint not null
);

-- What was committed, for those who follow. Pruned after a quarter of an hour.
create table mesh_changes (
  xid       xid8 not null default pg_current_xact_id(),
  pos       bigint generated always as identity,
  at        timestamptz not null default clock_timestamp(),
  version   bigint not null,
  op        "char" not null,        -- I, U, D; T: everything may have changed
  path      text collate "C" not null,
  node_type text collate "C" not null default '',
  origin    text collate "C",       -- the process that wrote it; null: a program that is not ours
  primary key (xid, pos)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
        autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);

create table mesh_feed_marks (
  at      timestamptz primary key default clock_timestamp(),
  horizon xid8 not null
);

-- Positions of those who must see everything at least once.
create table mesh_consumers (
  name        text collate "C" primary key,
  timeline    bigint not null default 0,   -- of the server when it was stored
  xid         xid8 not null default '0',
  pos         bigint not null default 0,
  open        xid8[] not null default '{}',
  holder      text not null default '',
  held_until  timestamptz not null default '-infinity',
  moved_at    timestamptz not null default clock_timestamp()
);

-- Records that are not nodes.
create table mesh_blobs (
  bucket text collate "C" not null,
  key    text collate "C" not null,
  value  bytea not null,
  primary key (bucket, key)
);

-- Ours tells whether the writer is one of our processes: those set hubmesh.origin for their connection or
-- their transaction, and write history and change rows themselves.
create function mesh_ours() returns boolean language sql stable as $$
  select coalesce(current_setting('hubmesh.origin', true), '') <> ''
$$;

create function mesh_announce(p_version bigint, p_op text, p_path text, p_type text) returns void language sql as $$
  select pg_notify('mesh_node_changes', json_build_object('path', p_path, 'op', p_op, 'node_type', p_type, 'version', p_version)::text)
$$;

-- The triggers below are for programs that are not ours.

-- The last version that a path has had in what is kept of it, the present one apart. It is below that one, but where a
-- program has gone past the triggers; and where it is not, the next version is minted above both, and the present one
-- kept under a number of its own.
create function mesh_last(p_path text) returns bigint language plpgsql stable as $$
begin
  return greatest((select max(h.version) from mesh_node_history h where h.path = p_path),
    (select t.version from mesh_tombstones t where t.path = p_path), 0);
end $$;

-- A version is minted where the writer minted none: above the stored one, above all earlier lives.
create function mesh_foreign_row() returns trigger language plpgsql as $$
declare last bigint := mesh_last(new.path);
begin
  if tg_op = 'INSERT' then
    new.version := greatest(new.version, last + 1);
    new.kind := 1;
    new.created_at := coalesce(new.created_at, now());
    new.main_node := coalesce(new.main_node, new.path);
  else
    if new.path <> old.path then
      raise exception 'a path does not change: create the new node and delete the old one' using errcode = '0A000';
    end if;
    if (new.main_node, new.version, new.state, new.sync_behavior, new.node_type, new.name, new.description, new.category, new.icon,
        new.display_order, new.desired_id, new.exclude_from_context::text, new.prerendered_html, new.content::text)
      is not distinct from
       (old.main_node, old.version, old.state, old.sync_behavior, old.node_type, old.name, old.description, old.category, old.icon,
        old.display_order, old.desired_id, old.exclude_from_context::text, old.prerendered_html, old.content::text) then
      return old;
    end if;
    new.version := greatest(new.version, old.version + 1, case when last >= old.version then last + 2 end);
    new.kind := 2;
  end if;
  new.modified_at := coalesce(case when tg_op = 'UPDATE' and new.modified_at = old.modified_at then null else new.modified_at end, now());
  new.folded := replace(lower(new.path), '/', E'\x01');
  return new;
end $$;

-- An insert may have waited for a deletion after its version was minted. The row is claimed now, and nobody deletes it:
-- a statement that begins now sees all earlier lives.
create function mesh_foreign_inserted() returns trigger language plpgsql as $$
declare
  late   text[];
  raised bigint[];
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    -- The snapshot is older than the insert. A tombstone that it does not see ends the transaction (40001).
    insert into mesh_tombstones (path, version) select path, 0 from new_rows on conflict do nothing;
    delete from mesh_tombstones t using new_rows r where t.path = r.path and t.version = 0;
  end if;
  select array_agg(path) into late from new_rows where mesh_last(path) >= version;
  if late is not null then
    perform set_config('hubmesh.origin', 'mesh', true); -- it is no second version
    with u as (
      update mesh_nodes n set version = mesh_last(n.path) + 1 from new_rows r
      where r.path = any(late) and n.path = r.path and n.version = r.version returning n.path, n.version)
    select array_agg(path), array_agg(version) into late, raised from u;
    perform set_config('hubmesh.origin', '', true);
  end if;
  insert into mesh_changes (version, op, path, node_type)
  select coalesce(u.version, r.version), 'I', r.path, r.node_type from new_rows r left join unnest(late, raised) as u(path, version) on u.path = r.path;
  if (select count(*) from (select from new_rows limit 501) x) > 500 then
    perform pg_notify('mesh_node_changes', '');
  else
    perform mesh_announce(coalesce(u.version, r.version), 'INSERT', r.path, r.node_type)
    from new_rows r left join unnest(late, raised) as u(path, version) on u.path = r.path;
  end if;
  return null;
end $$;

create function mesh_foreign_updated() returns trigger language plpgsql as $$
declare n int;
begin
  insert into mesh_node_history (path, main_node, version, kind, state, sync_behavior, node_type, name, description, category, icon,
    display_order, created_at, created_by, modified_at, modified_by, desired_id, exclude_from_context, prerendered_html, content)
  select o.path, o.main_node, case when exists (select from mesh_node_history h where h.path = o.path and h.version >= o.version and h.version < n.version)
      or exists (select from mesh_tombstones t where t.path = o.path and t.version >= o.version and t.version < n.version)
      then n.version - 1 else o.version end, o.kind, o.state, o.sync_behavior, o.node_type, o.name, o.description, o.category, o.icon,
    o.display_order, o.created_at, o.created_by, o.modified_at, o.modified_by, o.desired_id, o.exclude_from_context, o.prerendered_html, o.content
  from old_rows o join new_rows n using (path) where n.version <> o.version;
  insert into mesh_changes (version, op, path, node_type)
  select n.version, 'U', n.path, n.node_type from old_rows o join new_rows n using (path) where n.version <> o.version;
  get diagnostics n = row_count;
  if n > 500 then
    perform pg_notify('mesh_node_changes', '');
  elsif n > 0 then
    perform mesh_announce(n.version, 'UPDATE', n.path, n.node_type)
    from old_rows o join new_rows n using (path) where n.version <> o.version;
  end if;
  return null;
end $$;

create function mesh_foreign_deleted() returns trigger language plpgsql as $$
begin
  with gone as materialized (select o.*, greatest(o.version, mesh_last(o.path) + 1) as kept from old_rows o),
  hist as (
    insert into mesh_node_history (path, main_node, version, kind, state, sync_behavior, node_type, name, description, category, icon,
      display_order, created_at, created_by, modified_at, modified_by, desired_id, exclude_from_context, prerendered_html, content)
    select g.path, g.main_node, g.kept, g.kind, g.state, g.sync_behavior, g.node_type, g.name, g.description, g.category, g.icon,
      g.display_order, g.created_at, g.created_by, g.modified_at, g.modified_by, g.desired_id, g.exclude_from_context, g.prerendered_html, g.content
    from gone g
    union all
    select g.path, g.main_node, g.kept + 1, 3, 0, 0, '', g.name, '', '', '', null, null, '', now(), session_user, '', null, '', null from gone g),
  tomb as (
    insert into mesh_tombstones (path, version) select path, kept + 1 from gone
    on conflict (path) do update set version = greatest(mesh_tombstones.version, excluded.version))
  insert into mesh_changes (version, op, path, node_type) select kept + 1, 'D', path, node_type from gone;
  if (select count(*) from (select from old_rows limit 501) x) > 500 then
    perform pg_notify('mesh_node_changes', '');
  else
    perform mesh_announce(t.version, 'DELETE', o.path, o.node_type) from old_rows o join mesh_tombstones t using (path);
  end if;
  return null;
end $$;

-- A truncation is the deletion of everything. It holds the table by now, so that nothing comes between.
create function mesh_truncating() returns trigger language plpgsql as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'the nodes are truncated in a transaction that is read committed: an older snapshot does not see all that goes' using errcode = '0A000';
  end if;
  with gone as materialized (select n.*, greatest(n.version, mesh_last(n.path) + 1) as kept from mesh_nodes n),
  hist as (
    insert into mesh_node_history (path, main_node, version, kind, state, sync_behavior, node_type, name, description, category, icon,
      display_order, created_at, created_by, modified_at, modified_by, desired_id, exclude_from_context, prerendered_html, content)
    select g.path, g.main_node, g.kept, g.kind, g.state, g.sync_behavior, g.node_type, g.name, g.description, g.category, g.icon,
      g.display_order, g.created_at, g.created_by, g.modified_at, g.modified_by, g.desired_id, g.exclude_from_context, g.prerendered_html, g.content
    from gone g
    union all
    select g.path, g.main_node, g.kept + 1, 3, 0, 0, '', g.name, '', '', '', null, null, '', now(), session_user, '', null, '', null from gone g)
  insert into mesh_tombstones (path, version) select path, kept + 1 from gone
  on conflict (path) do update set version = greatest(mesh_tombstones.version, excluded.version);
  return null;
end $$;

create function mesh_truncated() returns trigger language plpgsql as $$
begin
  insert into mesh_changes (version, op, path) values (0, 'T', '');
  perform pg_notify('mesh_node_changes', '');
  return null;
end $$;

create trigger mesh_foreign_row before insert or update on mesh_nodes
  for each row when (not mesh_ours()) execute function mesh_foreign_row();
create trigger mesh_foreign_inserted after insert on mesh_nodes referencing new table as new_rows
  for each statement when (not mesh_ours()) execute function mesh_foreign_inserted();
create trigger mesh_foreign_updated after update on mesh_nodes referencing old table as old_rows new table as new_rows
  for each statement when (not mesh_ours()) execute function mesh_foreign_updated();
create trigger mesh_foreign_deleted after delete on mesh_nodes referencing old table as old_rows
  for each statement when (not mesh_ours()) execute function mesh_foreign_deleted();
create trigger mesh_truncating before truncate on mesh_nodes
  for each statement execute function mesh_truncating();
create trigger mesh_truncated after truncate on mesh_nodes
  for each statement execute function mesh_truncated();

-- Refuse ends the transaction of a create that a deletion has overtaken.
create function mesh_refuse(p_path text) returns void language plpgsql as $$
begin
  raise exception 'the version of % is not above that of its deletion', p_path using errcode = 'HM001';
end $$;

-- The functions of the triggers work on the tables that lie beside them, whatever the search_path of a writer is.
do $$
declare name text;
begin
  foreach name in array array['mesh_last(text)', 'mesh_foreign_row()', 'mesh_foreign_inserted()', 'mesh_foreign_updated()', 'mesh_foreign_deleted()',
    'mesh_truncating()', 'mesh_truncated()'] loop
    execute format('alter function %I.%s set search_path = %I, pg_temp', current_schema(), name, current_schema());
  end loop;
end $$;

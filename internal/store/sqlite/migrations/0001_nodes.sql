-- The present version of each node. The columns after "version" are the same in history.
create table nodes (
  id          integer primary key,
  key         text not null,
  folded      text not null,            -- the key in folded letters: two nodes never differ in case only
  main        text,                     -- key of the main node; null: the node is its own
  version     integer not null,
  kind        integer not null,         -- how this version came about: 1 created, 2 updated
  state       integer not null,
  sync        integer not null,
  node_type   text not null,
  name        text not null,
  description text not null,
  category    text not null,
  icon        text not null,
  ord         integer,
  created_at  integer,                  -- microseconds since 1970, UTC
  created_by  text not null,
  modified_at integer,
  modified_by text not null,
  desired_id  text not null,
  exclude     text,                     -- JSON list of contexts
  prerendered text not null,
  content     text                      -- JSON
) strict;
create unique index nodes_key    on nodes (key);
create unique index nodes_folded on nodes (folded);
create index        nodes_main   on nodes (main) where main is not null;
create index        nodes_type   on nodes (node_type, key);

-- Superseded versions and deletions (kind 3). With its rowid, because its rows overflow their pages.
create table history (
  key         text not null,
  main        text,
  version     integer not null,
  kind        integer not null,
  state       integer not null default 0,
  sync        integer not null default 0,
  node_type   text not null default '',
  name        text not null default '',
  description text not null default '',
  category    text not null default '',
  icon        text not null default '',
  ord         integer,
  created_at  integer,
  created_by  text not null default '',
  modified_at integer,
  modified_by text not null,
  desired_id  text not null default '',
  exclude     text,
  prerendered text not null default '',
  content     text,
  unique (key, version)
) strict;

create trigger nodes_superseded after update on nodes begin
  insert into history (key, main, version, kind, state, sync, node_type, name, description, category, icon, ord,
    created_at, created_by, modified_at, modified_by, desired_id, exclude, prerendered, content)
  values (old.key, old.main, old.version, old.kind, old.state, old.sync, old.node_type, old.name, old.description,
    old.category, old.icon, old.ord, old.created_at, old.created_by, old.modified_at, old.modified_by,
    old.desired_id, old.exclude, old.prerendered, old.content);
end;
create trigger nodes_deleted after delete on nodes begin
  insert into history (key, main, version, kind, state, sync, node_type, name, description, category, icon, ord,
    created_at, created_by, modified_at, modified_by, desired_id, exclude, prerendered, content)
  values (old.key, old.main, old.version, old.kind, old.state, old.sync, old.node_type, old.name, old.description,
    old.category, old.icon, old.ord, old.created_at, old.created_by, old.modified_at, old.modified_by,
    old.desired_id, old.exclude, old.prerendered, old.content);
end;

-- The last version of a path that has been deleted, so that a re-creation continues the count. It
-- stays when the path comes back, and when its partition goes.
create table tombstones (
  key     text primary key,
  version integer not null
) strict, without rowid;

create table partitions (
  name       text primary key,
  folded     text not null unique,
  created_at integer not null,
  created_by text not null,
  deleting   integer not null default 0
) strict, without rowid;

-- Records that are not nodes.
create table blobs (
  bucket text not null,
  key    text not null,
  value  blob not null,
  primary key (bucket, key)
) strict;

create view readable as
  select replace(key, char(1), '/') as path, version, node_type, name, state,
    replace(coalesce(main, key), char(1), '/') as main_node, content from nodes;

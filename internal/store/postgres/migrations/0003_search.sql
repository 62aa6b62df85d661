-- What text queries find their candidates by (docs/decisions/text-search.md): the grams of each node's texts, filled
-- in the background. A row of a node that is no longer there does no harm.
create table mesh_search (
  path    text collate "C" primary key,
  version bigint not null,          -- of the node that the grams were made of
  form    text collate "C" not null,-- how they were made
  digest  bytea not null,           -- of the grams: an update that leaves them alone writes no index
  grams   int[]                     -- null: too many, so that the node is always a candidate
);
-- Numbers in no order do not compress. Statistics of thousands of elements a row need few rows.
alter table mesh_search alter column grams set storage external;
alter table mesh_search alter column grams set statistics 10;
create index mesh_search_grams on mesh_search using gin (grams pg_catalog.array_ops);
create index mesh_search_wide  on mesh_search (path) where grams is null;

-- What all rows are, once everything is indexed: the form, and the tables that they were made of. A restore makes
-- other tables.
create table mesh_search_state (
  one    boolean primary key default true check (one),
  form   text collate "C" not null default '',
  tables bigint not null default 0
);
insert into mesh_search_state default values;

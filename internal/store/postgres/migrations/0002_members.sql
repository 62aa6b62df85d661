-- The silos of the cluster (architecture.md decision 1). Every change of a member raises the number, under the
-- lock of the one row of mesh_view.
create table mesh_view (
  one    boolean primary key default true check (one),
  number bigint not null default 0
);
insert into mesh_view default values;

create table mesh_members (
  name       text collate "C" primary key,
  epoch      bigint not null unique,            -- random, new for each join
  addr       text collate "C" not null unique,  -- where its transport listens
  leaving    boolean not null default false,
  node_types text[],                            -- what it handles; null: all
  beat_at    timestamptz not null default clock_timestamp(),
  joined_at  timestamptz not null default clock_timestamp()
);

create table mesh_votes (
  target bigint not null,
  voter  bigint not null,
  at     timestamptz not null default clock_timestamp(),
  primary key (target, voter)
);

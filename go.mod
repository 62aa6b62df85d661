module github.com/hubmesh/hubmesh

go 1.26.0

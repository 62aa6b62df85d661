module github.com/hubmesh/hubmesh/bench

go 1.26.0

require github.com/hubmesh/hubmesh v0.0.0

require github.com/asynkron/protoactor-go v0.0.0-20240822202345-3c0e61ca19c9 // indirect

replace github.com/hubmesh/hubmesh => ../

module github.com/hubmesh/hubmesh

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/text v0.14.0 // indirect
)

require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	golang.org/x/time v0.16.0
)

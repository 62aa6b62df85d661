package main

import (
	"context"

	"github.com/hubmesh/hubmesh/client"
)

type putCmd struct {
	remote
	nodeArgs
	condition
	IfAbsent bool `help:"Write only if there is no node."`
}

// Run replaces the node, or creates it, and prints it.
func (c *putCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	n, err := c.node(s)
	if err != nil {
		return err
	}
	got, err := server.Put(ctx, n, client.If{Version: c.IfVersion, Absent: c.IfAbsent})
	if err != nil {
		return err
	}
	return s.print(got)
}

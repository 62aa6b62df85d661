package main

import (
	"context"

	"github.com/hubmesh/hubmesh/client"
)

type deleteCmd struct {
	remote
	condition
	Path      string `arg:"" help:"Path of the node."`
	Recursive bool   `help:"Take everything below, too." short:"r"`
}

// Run deletes and prints how many nodes went.
func (c *deleteCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	got, err := server.Delete(ctx, c.Path, c.Recursive, client.If{Version: c.IfVersion})
	if err != nil {
		return err
	}
	return s.print(got)
}

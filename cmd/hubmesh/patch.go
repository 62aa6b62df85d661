package main

import (
	"context"

	"github.com/hubmesh/hubmesh/client"
)

type patchCmd struct {
	remote
	condition
	Path  string `arg:"" help:"Path of the node."`
	Patch string `arg:"" help:"The merge patch as JSON, @FILE, or - for the standard input."`
}

// Run merges the patch and prints the node.
func (c *patchCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	patch, err := s.input(c.Patch)
	if err != nil {
		return err
	}
	got, err := server.Patch(ctx, c.Path, patch, client.If{Version: c.IfVersion})
	if err != nil {
		return err
	}
	return s.print(got)
}

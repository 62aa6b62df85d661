package main

import (
	"context"
)

type patchCmd struct {
	remote
	condition
	Path  string `arg:"" help:"Path of the node."`
	Patch string `arg:"" help:"The merge patch as JSON, @FILE, or - for the standard input."`
}

// Run merges the patch and prints the node.
func (c *patchCmd) Run(ctx context.Context, s std) error {
	when, err := c.when()
	if err != nil {
		return err
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	patch, err := s.input(c.Patch)
	if err != nil {
		return err
	}
	got, err := server.Patch(ctx, c.Path, patch, when)
	if err != nil {
		return err
	}
	return s.print(got)
}

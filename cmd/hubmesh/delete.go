package main

import (
	"context"
)

type deleteCmd struct {
	remote
	condition
	Path      string `arg:"" help:"Path of the node."`
	Recursive bool   `help:"Take everything below, too." short:"r"`
}

// Run deletes and prints how many nodes went.
func (c *deleteCmd) Run(ctx context.Context, s std) error {
	when, err := c.when()
	if err != nil {
		return err
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	got, err := server.Delete(ctx, c.Path, c.Recursive, when)
	if err != nil {
		return err
	}
	return s.print(got)
}

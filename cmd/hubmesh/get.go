package main

import (
	"context"
	"fmt"
)

type getCmd struct {
	remote
	Path string `arg:"" help:"Path of the node."`
	At   *int64 `help:"Print the node as it was at this version." placeholder:"N"`
}

// Run prints the node.
func (c *getCmd) Run(ctx context.Context, s std) error {
	if c.At != nil && *c.At < 1 {
		return usage(fmt.Errorf("--at is %d; the first version of a node is 1", *c.At))
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	if c.At != nil {
		n, err := server.At(ctx, c.Path, *c.At)
		if err != nil {
			return err
		}
		return s.print(n)
	}
	n, err := server.Get(ctx, c.Path)
	if err != nil {
		return err
	}
	return s.print(n)
}

package main

import (
	"context"
	"errors"
)

type putCmd struct {
	remote
	nodeArgs
	condition
	IfAbsent bool `help:"Write only if there is no node."`
}

// Run replaces the node, or creates it, and prints it.
func (c *putCmd) Run(ctx context.Context, s std) error {
	when, err := c.when()
	if err != nil {
		return err
	}
	if when.Absent = c.IfAbsent; when.Absent && when.Version > 0 {
		return usage(errors.New("--if-version asks for a node and --if-absent for none: give one of them"))
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	n, err := c.node(s)
	if err != nil {
		return err
	}
	got, err := server.Put(ctx, n, when)
	if err != nil {
		return err
	}
	return s.print(got)
}

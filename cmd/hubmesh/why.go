package main

import "context"

type whyCmd struct {
	remote
	Address string `arg:"" help:"Path of a node, or address of a process hub."`
}

// Run prints what the server knows.
func (c *whyCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	known, err := server.Why(ctx, c.Address)
	if err != nil {
		return err
	}
	return s.print(known)
}

package main

import "context"

type getCmd struct {
	remote
	Path string `arg:"" help:"Path of the node."`
	At   int64  `help:"Print the node as it was at this version." placeholder:"N"`
}

// Run prints the node.
func (c *getCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	if c.At > 0 {
		n, err := server.At(ctx, c.Path, c.At)
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

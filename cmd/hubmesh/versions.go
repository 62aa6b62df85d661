package main

import "context"

type versionsCmd struct {
	remote
	Path   string `arg:"" help:"Path of the node."`
	Before int64  `help:"Versions below this one." placeholder:"N"`
	Limit  int    `help:"At most so many." placeholder:"N"`
}

// Run prints the history.
func (c *versionsCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	list, err := server.Versions(ctx, c.Path, c.Before, c.Limit)
	if err != nil {
		return err
	}
	return s.print(map[string]any{"versions": list})
}

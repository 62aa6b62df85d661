package main

import (
	"context"
	"fmt"
)

type versionsCmd struct {
	remote
	Path   string `arg:"" help:"Path of the node."`
	Before *int64 `help:"Versions below this one." placeholder:"N"`
	Limit  *int64 `help:"At most so many." placeholder:"N"`
}

// Run prints the history.
func (c *versionsCmd) Run(ctx context.Context, s std) error {
	var before, limit int64 // 0 is none
	for _, flag := range []struct {
		name  string
		given *int64
		to    *int64
	}{{"--before", c.Before, &before}, {"--limit", c.Limit, &limit}} {
		if flag.given == nil {
			continue
		}
		if *flag.given < 1 {
			return usage(fmt.Errorf("%s is %d; it is a whole number above 0", flag.name, *flag.given))
		}
		*flag.to = *flag.given
	}
	server, err := c.client()
	if err != nil {
		return err
	}
	list, err := server.Versions(ctx, c.Path, before, int(limit))
	if err != nil {
		return err
	}
	return s.print(map[string]any{"versions": list})
}

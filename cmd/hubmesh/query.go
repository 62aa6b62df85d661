package main

import (
	"context"
	"fmt"
	"strings"
)

type queryCmd struct {
	remote
	Query []string `arg:"" help:"The query; several words are joined by spaces."`
	Lines bool     `help:"Print a node a line instead of one document."`
}

// Run prints the nodes that match.
func (c *queryCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	got, err := server.Query(ctx, strings.ReplaceAll(strings.Join(c.Query, " "), noFlag, ""))
	if err != nil {
		return err
	}
	if !c.Lines {
		return s.print(got)
	}
	for _, n := range got.Nodes {
		if err := s.line(n); err != nil {
			return err
		}
	}
	if got.Truncated {
		fmt.Fprintln(s.err, "hubmesh: there are more nodes than these; narrow the query")
	}
	return nil
}

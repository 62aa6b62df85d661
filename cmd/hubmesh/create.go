package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hubmesh/hubmesh/client"
)

// nodeArgs say what a node is: a document, flags, or both; flags win.
type nodeArgs struct {
	Path     string  `arg:"" help:"Path of the node."`
	Node     string  `arg:"" optional:"" help:"The node as JSON, @FILE, or - for the standard input."`
	Type     string  `help:"Node type." placeholder:"TYPE"`
	Name     string  `help:"Name for people." placeholder:"NAME"`
	Content  string  `help:"Content as JSON, @FILE, or - for the standard input." placeholder:"JSON" xor:"content"`
	Markdown *string `help:"Content is this Markdown; the type is Markdown unless --type says otherwise." placeholder:"TEXT" xor:"content"`
}

func (a nodeArgs) node(s std) (client.Node, error) {
	var n client.Node
	if a.Node != "" {
		text, err := s.input(a.Node)
		if err != nil {
			return n, err
		}
		if err := json.Unmarshal(text, &n); err != nil {
			return n, usage(fmt.Errorf("this is no node: %w", err))
		}
	}
	n.Path = a.Path
	if a.Name != "" {
		n.Name = a.Name
	}
	if a.Markdown != nil { // an empty document is one, too
		text, err := encode(map[string]string{"$type": "Markdown", "markdown": *a.Markdown})
		if err != nil {
			return n, err
		}
		n.NodeType, n.Content = "Markdown", text
	}
	if a.Content != "" {
		text, err := s.input(a.Content)
		if err != nil {
			return n, err
		}
		n.Content = text
	}
	if a.Type != "" {
		n.NodeType = a.Type
	}
	return n, nil
}

type createCmd struct {
	remote
	nodeArgs
}

// Run creates the node and prints it.
func (c *createCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	n, err := c.node(s)
	if err != nil {
		return err
	}
	got, err := server.Create(ctx, n)
	if err != nil {
		return err
	}
	return s.print(got)
}

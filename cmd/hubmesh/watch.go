package main

import (
	"context"
	"encoding/json"

	"github.com/hubmesh/hubmesh/client"
)

type watchCmd struct {
	remote
	Path string `arg:"" help:"Path of the node."`
}

// watchLine is one event as it is printed. Node is the node after the event.
type watchLine struct {
	Event   client.Kind     `json:"event"`
	Version int64           `json:"version"`
	BasedOn int64           `json:"basedOn,omitempty"`
	Patch   json.RawMessage `json:"patch,omitempty"`
	Node    json.RawMessage `json:"node,omitempty"`
}

// Run prints events until it is interrupted or the server ends the watch.
func (c *watchCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	err = server.Watch(ctx, c.Path, following(s), func(e client.Event) error {
		return s.line(watchLine{Event: e.Kind, Version: e.Version, BasedOn: e.BasedOn, Patch: e.Patch, Node: e.Text})
	})
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

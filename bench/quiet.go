package main

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// quiet keeps a peer from logging during the measurement.
func quiet(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }

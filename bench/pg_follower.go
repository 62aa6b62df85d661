package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// follower is one process as far as its database is concerned: a store and a feed of its own.
type follower struct {
	store *postgres.Store
	relay *feed.Relay
	feed  *feed.Feed
}

// newFollower opens one and waits until it listens.
func newFollower(url string, told func(feed.Invalidation)) (*follower, error) {
	s, err := postgres.Open(context.Background(), postgres.Options{URL: url})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	f := &follower{store: s, relay: feed.NewRelay(s.ReadMany, log)}
	f.relay.Invalidations("bench", told)
	f.feed = feed.Open(feed.SourceOf(s), f.relay, log)
	s.Subscribe(func(c store.Change) {
		f.relay.Publish(c)
		f.feed.Committed()
	})
	select {
	case <-f.feed.Live():
		return f, nil
	case <-time.After(10 * time.Second):
		f.close()
		return nil, errors.New("the feed does not listen")
	}
}

func (f *follower) close() {
	f.feed.Close()
	f.relay.Close()
	f.store.Close()
}

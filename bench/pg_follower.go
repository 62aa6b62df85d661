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

type pgConnection struct{ *postgres.Changes }

func (c pgConnection) Verify(ctx context.Context, last []store.ChangeRow) (feed.Server, error) {
	v, err := c.Changes.Verify(ctx, last)
	return feed.Server(v), err
}

type pgListener struct{ *postgres.Listener }

func (l pgListener) Wait(ctx context.Context) (feed.Notification, error) {
	payload, own, err := l.Listener.Wait(ctx)
	return feed.Notification{Payload: payload, Own: own}, err
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
	f.feed = feed.Open(feed.Source{Origin: s.Origin(), Notify: s.Notify, Unsure: s.Unsure, Read: s.ReadMany,
		Connect: func(ctx context.Context) (feed.Connection, error) {
			c, err := s.Changes(ctx)
			return pgConnection{c}, err
		},
		Listen: func(ctx context.Context) (feed.Listener, error) {
			l, err := s.Listen(ctx)
			return pgListener{l}, err
		}}, f.relay, log)
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

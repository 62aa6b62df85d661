package postgres

import (
	"context"
	"time"
)

// What tests look at.
var (
	ReadText     = readText
	ChildrenText = childrenText
)

const FeedReadText = feedReadText

func (s *Store) PruneOlder(ctx context.Context, keep time.Duration) (int64, error) {
	return s.pruneOlder(ctx, keep)
}

package auth

import (
	"context"
	"encoding/json"
	"fmt"
)

// Holders lists the subjects who can sign in by now: those with a token or a session that is good. It reads every record.
func (s *Service) Holders(ctx context.Context) (map[string]bool, error) {
	holders := map[string]bool{}
	for _, k := range s.keepers() {
		good, err := k.good(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range good {
			holders[r.Subject] = true
		}
	}
	return holders, nil
}

// EndAll ends every token and session of a subject, and what is open with them.
func (s *Service) EndAll(ctx context.Context, subject string) error {
	for _, k := range s.keepers() {
		good, err := k.good(ctx)
		if err != nil {
			return err
		}
		for id, r := range good {
			if r.Subject != subject {
				continue
			}
			if k == &s.Tokens.keeper {
				err = s.Tokens.Revoke(ctx, id)
			} else {
				err = k.blobs.Delete(ctx, k.bucket, id)
				k.end(id)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) keepers() []*keeper { return []*keeper{&s.Tokens.keeper, &s.Sessions.keeper} }

// good reads the records that are good, by id. One that is broken lets nobody in.
func (k *keeper) good(ctx context.Context) (map[string]Record, error) {
	all, err := k.blobs.List(ctx, k.bucket)
	if err != nil {
		return nil, fmt.Errorf("reading who can sign in: %w", err)
	}
	list := map[string]Record{}
	for id, text := range all {
		var r Record
		if json.Unmarshal(text, &r) == nil && !r.Revoked && !r.expired() {
			list[id] = r
		}
	}
	return list, nil
}

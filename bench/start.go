package main

import (
	"context"
	"os"
	"time"
)

func startScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("start", "ms to the first 200", rounds)
	tmp, bin, clean, err := workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer clean()
	for range rounds {
		dir, err := os.MkdirTemp(tmp, "run-")
		if err != nil {
			return nil, err
		}
		s, err := serve(bin, dir)
		if err != nil {
			return nil, err
		}
		r.add("cold serve to first 200", ms(s.took))
		time.Sleep(500 * time.Millisecond) // the guide is imported
		r.add("resident MiB", s.resident()/(1<<20))
		if err := s.stop(); err != nil {
			return nil, err
		}
	}
	r.metric("first_200_ms", r.median("cold serve to first 200"))
	r.goal("first_200_ms", "<=", 300)
	r.metric("resident_mib", r.median("resident MiB"))
	r.goal("resident_mib", "<=", 60)
	return r, nil
}

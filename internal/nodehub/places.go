package nodehub

import (
	"context"
	"slices"
	"sync"
)

// The bounds of waiting for a place.
const (
	maxWaiting       = 1024 // callers that wait for a place
	maxSubjectWaits  = 128  // of them of one subject
	subjectsHalfOf   = 2    // one subject has at most this part of the places
	leastSubjectsOwn = 1    // and always one
)

// fairPlaces are places that subjects take in turns. No subject ever has more than half of them, so that
// there is always one soon for the others, and those who wait are served round robin by subject, in the
// order of each subject's own. It is safe for concurrent use.
type fairPlaces struct {
	size int    // places
	each int    // places of one subject
	what string // what waits for a place

	mu       sync.Mutex
	free     int
	taken    map[string]int
	waiting  int
	turns    []string // subjects that wait, the next first
	waitings map[string][]chan struct{}
}

func newFairPlaces(size int, what string) *fairPlaces {
	return &fairPlaces{size: size, what: what, each: max(leastSubjectsOwn, size/subjectsHalfOf), free: size, taken: map[string]int{}, waitings: map[string][]chan struct{}{}}
}

// enter takes a place for a subject, and waits for one no longer than ctx. The error is ctx's cause, or a
// refusal where too many wait.
func (p *fairPlaces) enter(ctx context.Context, subject string) error {
	p.mu.Lock()
	if err := context.Cause(ctx); err != nil {
		p.mu.Unlock()
		return err
	}
	if p.free > 0 && p.taken[subject] < p.each && len(p.waitings[subject]) == 0 {
		p.take(subject)
		p.mu.Unlock()
		return nil
	}
	if p.waiting >= maxWaiting || len(p.waitings[subject]) >= maxSubjectWaits {
		p.mu.Unlock()
		return overloaded("too many %s", p.what)
	}
	mine := make(chan struct{})
	if len(p.waitings[subject]) == 0 {
		p.turns = append(p.turns, subject)
	}
	p.waitings[subject] = append(p.waitings[subject], mine)
	p.waiting++
	p.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waitings[subject], mine)
	if i < 0 {
		return nil // it was given at this moment
	}
	p.waitings[subject] = slices.Delete(p.waitings[subject], i, i+1)
	p.waiting--
	p.settle(subject)
	return context.Cause(ctx)
}

// take notes a place; the lock is held.
func (p *fairPlaces) take(subject string) {
	p.free--
	p.taken[subject]++
}

// settle forgets a subject that no longer waits; the lock is held.
func (p *fairPlaces) settle(subject string) {
	if len(p.waitings[subject]) == 0 {
		delete(p.waitings, subject)
		if i := slices.Index(p.turns, subject); i >= 0 {
			p.turns = slices.Delete(p.turns, i, i+1)
		}
	}
}

// leave gives a place back, to the next who waits.
func (p *fairPlaces) leave(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.taken[subject]--; p.taken[subject] == 0 {
		delete(p.taken, subject)
	}
	for p.free > 0 {
		i := slices.IndexFunc(p.turns, func(next string) bool { return p.taken[next] < p.each })
		if i < 0 {
			return
		}
		next := p.turns[i]
		p.turns = append(slices.Delete(p.turns, i, i+1), next) // it comes last now
		close(p.waitings[next][0])
		p.waitings[next] = p.waitings[next][1:]
		p.waiting--
		p.take(next)
		p.settle(next)
	}
}

// used is how many places are taken.
func (p *fairPlaces) used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - p.free
}

package feed

import (
	"container/list"

	"github.com/hubmesh/hubmesh/internal/node"
)

// queue is what a subscriber still has to be told: the newest of each path, at the place of the oldest. When
// there are more paths than it may hold it tells instead that everything may have changed.
type queue struct {
	limit int
	order list.List // of *queued
	paths map[node.Path]*list.Element
	reset *Invalidation // told before everything else
}

type queued struct {
	invalidation Invalidation
	direct       bool   // a writer waits for it: it is not given up for a reset
	told         func() // of a mark: what is called once everything before it has been told
}

func newQueue(limit int) *queue { return &queue{limit: limit, paths: map[node.Path]*list.Element{}} }

// push adds what is newest of its path; overflow tells that others were given up for a reset.
func (q *queue) push(i Invalidation, direct bool) (overflow bool) {
	if e, ok := q.paths[i.Path]; ok {
		item := e.Value.(*queued)
		item.invalidation, item.direct = i, item.direct || direct
		return false
	}
	if len(q.paths) >= q.limit {
		q.clear(Invalidation{Reset: true, At: i.At, Cause: causeQueue})
		overflow = true
	}
	q.paths[i.Path] = q.order.PushBack(&queued{invalidation: i, direct: direct})
	return overflow
}

// clear gives up everything for a reset, but what a writer waits for.
func (q *queue) clear(reset Invalidation) {
	q.reset = &reset
	for e := q.order.Front(); e != nil; {
		next := e.Next()
		if item := e.Value.(*queued); !item.direct {
			delete(q.paths, item.invalidation.Path)
			q.order.Remove(e)
		}
		e = next
	}
}

// mark has told called once everything that is queued now has been told.
func (q *queue) mark(told func()) { q.order.PushBack(&queued{direct: true, told: told}) }

// marked removes a mark that everything before has been told of; nil where there is none.
func (q *queue) marked() func() {
	e := q.order.Front()
	if q.reset != nil || e == nil || e.Value.(*queued).told == nil {
		return nil
	}
	return q.order.Remove(e).(*queued).told
}

// marks removes all marks.
func (q *queue) marks() (told []func()) {
	for e := q.order.Front(); e != nil; {
		next := e.Next()
		if item := e.Value.(*queued); item.told != nil {
			q.order.Remove(e)
			told = append(told, item.told)
		}
		e = next
	}
	return told
}

// take removes what is to be told of a path.
func (q *queue) take(path node.Path) (Invalidation, bool) {
	e, ok := q.paths[path]
	if !ok {
		return Invalidation{}, false
	}
	return q.remove(e), true
}

// leave says that no writer waits for a path any more.
func (q *queue) leave(path node.Path) {
	if e, ok := q.paths[path]; ok {
		e.Value.(*queued).direct = false
	}
}

// pop removes what has waited longest.
func (q *queue) pop() (Invalidation, bool) {
	if q.reset != nil {
		reset := *q.reset
		q.reset = nil
		return reset, true
	}
	e := q.order.Front()
	if e == nil {
		return Invalidation{}, false
	}
	return q.remove(e), true
}

func (q *queue) remove(e *list.Element) Invalidation {
	item := q.order.Remove(e).(*queued)
	delete(q.paths, item.invalidation.Path)
	return item.invalidation
}

func (q *queue) len() int { return len(q.paths) }

package store

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// CommitterOptions bounds the committer; the zero value is the standard.
type CommitterOptions struct {
	// Lanes is the number of batches that may be committed at a time; 0 is 1, right for SQLite.
	Lanes int
	// QueueRows and QueueBytes bound what waits: 0 is 4,096 rows and 64 MiB. Bulk rows fill at most half
	// of either, so that an import never refuses the writes beside it.
	QueueRows, QueueBytes int
	// BatchRows bounds the single writes in a batch: 0 is 128. BulkRows bounds the bulk rows in a batch
	// without single writes, BulkBeside those in one with them: 0 is 500 and 50.
	BatchRows, BulkRows, BulkBeside int
	// BatchBytes bounds a batch of more than one row: 0 is 8 MiB.
	BatchBytes int
	// Locked is how long a row is tried that something else holds: 0 is 10 s.
	Locked time.Duration
	// Tried is how long a write is tried while the store can not be reached, the wait for its batch included: 0 is 10 s.
	Tried time.Duration
}

func (o CommitterOptions) withDefaults() CommitterOptions {
	for _, d := range []struct {
		value    *int
		standard int
	}{
		{&o.Lanes, 1}, {&o.QueueRows, 4096}, {&o.QueueBytes, 64 << 20},
		{&o.BatchRows, 128}, {&o.BulkRows, 500}, {&o.BulkBeside, 50}, {&o.BatchBytes, 8 << 20},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if o.Locked <= 0 {
		o.Locked = 10 * time.Second
	}
	if o.Tried <= 0 {
		o.Tried = 10 * time.Second
	}
	return o
}

// entry is one queued write.
type entry struct {
	write  Write
	bulk   bool
	bytes  int
	next   *entry // the following write of the same path
	settle func(Result)
	until  time.Time // how long it is tried, once something else was found to hold its row
	due    time.Time // how long it is tried while the store can not be reached
}

// batcher forms batches from queued writes. It is a state machine without goroutine, clock or lock.
//
// A write whose path is not queued and not being committed is ready; the following writes of the path
// hang on it and become ready one after the other, each when its predecessor's batch is done. So a
// path stands in a batch once, and never in two batches at a time, and its writes keep their order
// (architecture.md decision 9, storage.md §4). A batch takes what is ready and waits for nothing more:
// no linger.
type batcher struct {
	options CommitterOptions
	singles queue
	bulks   queue
	last    map[node.Path]*entry // the last write of each path that is queued or being committed

	waiting, waitingBulk load // not yet in a batch
}

type load struct{ rows, bytes int }

func (l *load) add(rows, bytes int) {
	l.rows += rows
	l.bytes += bytes
}

func newBatcher(options CommitterOptions) *batcher {
	return &batcher{options: options.withDefaults(), last: map[node.Path]*entry{}}
}

// add queues the entries, all or none; false is "overloaded".
func (b *batcher) add(entries ...*entry) bool {
	bytes := 0
	bulk := 0
	bulkBytes := 0
	for _, e := range entries {
		bytes += e.bytes
		if e.bulk {
			bulk++
			bulkBytes += e.bytes
		}
	}
	o := b.options
	// A single write of any size fits into an empty queue.
	if b.waiting.rows > 0 && (b.waiting.rows+len(entries) > o.QueueRows || b.waiting.bytes+bytes > o.QueueBytes) {
		return false
	}
	if bulk > 0 && b.waitingBulk.rows > 0 && (b.waitingBulk.rows+bulk > o.QueueRows/2 || b.waitingBulk.bytes+bulkBytes > o.QueueBytes/2) {
		return false
	}
	b.waiting.add(len(entries), bytes)
	b.waitingBulk.add(bulk, bulkBytes)
	for _, e := range entries {
		path := e.write.Node.Path
		if before, busy := b.last[path]; busy {
			before.next = e
		} else {
			b.ready(e)
		}
		b.last[path] = e
	}
	return true
}

func (b *batcher) ready(e *entry) {
	if e.bulk {
		b.bulks.push(e)
	} else {
		b.singles.push(e)
	}
}

// take forms the next batch from what is ready; nil when nothing is.
func (b *batcher) take() []*entry {
	var batch []*entry
	bytes := 0
	fill := func(q *queue, most int) {
		for ; most > 0; most-- {
			e := q.peek()
			if e == nil || len(batch) > 0 && bytes+e.bytes > b.options.BatchBytes {
				return
			}
			q.pop()
			batch = append(batch, e)
			bytes += e.bytes
			b.waiting.add(-1, -e.bytes)
			if e.bulk {
				b.waitingBulk.add(-1, -e.bytes)
			}
		}
	}
	fill(&b.singles, b.options.BatchRows)
	if len(batch) == 0 {
		fill(&b.bulks, b.options.BulkRows)
	} else {
		fill(&b.bulks, b.options.BulkBeside)
	}
	return batch
}

// again queues an entry of a batch that is over once more, behind what is ready. The writes after it wait for it still.
func (b *batcher) again(e *entry) {
	b.waiting.add(1, e.bytes)
	if e.bulk {
		b.waitingBulk.add(1, e.bytes)
	}
	b.ready(e)
}

// done says that the batch is over; the next writes of its paths become ready.
func (b *batcher) done(batch []*entry) {
	for _, e := range batch {
		if e.next != nil {
			b.ready(e.next)
			e.next = nil
		} else {
			delete(b.last, e.write.Node.Path)
		}
	}
}

// idle tells whether nothing is queued and nothing being committed.
func (b *batcher) idle() bool { return len(b.last) == 0 }

// queue is first in, first out.
type queue struct {
	entries []*entry
	head    int
}

func (q *queue) push(e *entry) { q.entries = append(q.entries, e) }

func (q *queue) peek() *entry {
	if q.head == len(q.entries) {
		return nil
	}
	return q.entries[q.head]
}

func (q *queue) pop() {
	q.entries[q.head] = nil
	if q.head++; q.head == len(q.entries) {
		q.entries, q.head = q.entries[:0], 0
	} else if q.head >= 1024 && q.head*2 >= len(q.entries) {
		q.entries = q.entries[:copy(q.entries, q.entries[q.head:])]
		q.head = 0
	}
}

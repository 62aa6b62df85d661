package query

// DefaultWork is how many bytes of nodes the terms of one query may look at, each term counting what it looks
// at itself. It is some seconds of one processor. Time would be no measure: what takes too long beside other
// work may be tried again, and what is too much stays too much.
const DefaultWork = 768 << 20

const (
	stepBytes  = 32 // what a look at one value costs beside its bytes, in bytes
	lookupCost = 2  // how much dearer finding a member of the content is than looking through all of it
)

// work counts the bytes that terms have looked at.
type work int64

func (w *work) add(bytes int) { *w += work(stepBytes + bytes) }

// Within returns the query with another bound on the bytes that its terms look at; 0 is [DefaultWork].
func (q Query) Within(bytes int64) Query {
	q.most = max(0, bytes)
	return q
}

func (q Query) maxWork() int64 {
	if q.most == 0 {
		return DefaultWork
	}
	return q.most
}

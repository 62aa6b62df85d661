package membership

import (
	"maps"
	"slices"
	"time"
)

// Rules of the table (protocol.md §2).
const (
	// Fresh is the age below which a heartbeat counts, by the table's clock.
	Fresh = 4 * time.Second
	// VoteFor is how long a vote counts.
	VoteFor = 5 * time.Second
)

// Rows is the table's content and its rules, in memory: what each transaction does. It is the whole of
// the membership of silos that share a process, and the model for a table in a database. Times are
// readings of the table's clock. It is not safe for concurrent use.
type Rows struct {
	key   Key
	rows  map[string]rowAt // by name
	votes map[vote]time.Duration
}

type rowAt struct {
	Member
	beat time.Duration
}

type vote struct{ target, voter Epoch }

// NewRows returns an empty table.
func NewRows() *Rows {
	return &Rows{key: Key{Timeline: 1}, rows: map[string]rowAt{}, votes: map[vote]time.Duration{}}
}

// Key is the key of the view; every change raises it.
func (t *Rows) Key() Key { return t.key }

// Epoch is the epoch under which a name stands in the table, 0 where it does not.
func (t *Rows) Epoch(name string) Epoch { return t.rows[name].Epoch }

// View is the members as they stand.
func (t *Rows) View() *View {
	members := make([]Member, 0, len(t.rows))
	for _, n := range slices.Sorted(maps.Keys(t.rows)) {
		members = append(members, t.rows[n].Member)
	}
	v, err := NewView(t.key, members)
	if err != nil {
		panic(err) // names are keys, and epochs are checked when they come in
	}
	return v
}

// Read lists the rows by name.
func (t *Rows) Read(now time.Duration) []Row {
	out := make([]Row, 0, len(t.rows))
	for _, n := range slices.Sorted(maps.Keys(t.rows)) {
		r := t.rows[n]
		out = append(out, Row{Member: r.Member, Fresh: now-r.beat < Fresh})
	}
	return out
}

// Join puts a member in. It replaces the row at its name or address, and removes those of the stale
// ones whose heartbeat is not fresh.
func (t *Rows) Join(now time.Duration, m Member, stale []Epoch) *View {
	maps.DeleteFunc(t.rows, func(_ string, r rowAt) bool {
		return r.Addr == m.Addr || slices.Contains(stale, r.Epoch) && now-r.beat >= Fresh
	})
	t.rows[m.Name] = rowAt{m, now}
	t.key.Number++
	return t.View()
}

// Beat refreshes a member's heartbeat and returns the key.
func (t *Rows) Beat(now time.Duration, self Epoch) Key {
	if n, r, ok := t.find(self); ok {
		r.beat = now
		t.rows[n] = r
	}
	return t.key
}

func (t *Rows) find(e Epoch) (string, rowAt, bool) {
	for n, r := range t.rows {
		if r.Epoch == e {
			return n, r, true
		}
	}
	return "", rowAt{}, false
}

// Vote counts a vote against a member, and removes the member where the votes suffice. It tells whether
// it did. The vote of somebody who has no row himself does not count.
func (t *Rows) Vote(now time.Duration, target Member, voter Epoch) (removed bool) {
	_, _, mine := t.find(voter)
	if r, ok := t.rows[target.Name]; !ok || r.Epoch != target.Epoch || !mine {
		return false
	}
	t.votes[vote{target.Epoch, voter}] = now
	votes, others := 0, 0
	for n, r := range t.rows {
		if n == target.Name {
			continue
		}
		if at, ok := t.votes[vote{target.Epoch, r.Epoch}]; ok && now-at < VoteFor {
			votes++
		}
		if now-r.beat < Fresh {
			others++
		}
	}
	if votes < Needed(others) {
		return false
	}
	delete(t.rows, target.Name)
	maps.DeleteFunc(t.votes, func(v vote, at time.Duration) bool { return v.target == target.Epoch || now-at >= VoteFor })
	t.key.Number++
	return true
}

// Leave marks a member as leaving. It tells whether that was a change.
func (t *Rows) Leave(self Epoch) bool {
	n, r, ok := t.find(self)
	if !ok || r.Leaving {
		return false
	}
	r.Leaving = true
	t.rows[n] = r
	t.key.Number++
	return true
}

// Gone removes a member. It tells whether that was a change.
func (t *Rows) Gone(self Epoch) bool {
	n, _, ok := t.find(self)
	if ok {
		delete(t.rows, n)
		t.key.Number++
	}
	return ok
}

// Copy is the table as it is now, for a replica that lags.
func (t *Rows) Copy() *Rows {
	return &Rows{key: t.key, rows: maps.Clone(t.rows), votes: maps.Clone(t.votes)}
}

// FailOver makes the table what a replica had: rows and number may go back, and a new timeline begins.
func (t *Rows) FailOver(replica *Rows) {
	timeline := t.key.Timeline + 1
	*t = *replica.Copy()
	t.key.Timeline = timeline
}

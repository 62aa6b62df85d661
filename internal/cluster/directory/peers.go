package directory

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Peers asks silos, this one included.
type Peers interface {
	// Ask sends m to one incarnation. done gets its answer or why there is none, on the turn, once,
	// never before Ask has returned and no later than within.
	Ask(to membership.Member, m wire.Request, within time.Duration, done func(wire.Answer, error))
	// Saw notes the key of a peer's view. Whoever is behind gets the newer view.
	Saw(from membership.Member, key membership.Key)
}

// Config sizes the directory. Every silo of a cluster must have the same Slots.
type Config struct {
	Slots        int
	RequestBound time.Duration // one hand-over, slot query or question to an incumbent
	LocateBound  time.Duration // one member's answer to a locate
	LocateGather time.Duration // how long questions to one member are gathered while none is under way; those behind one gather anyway
	LocateQueue  int           // questions that wait for one member; more are answered "busy"
	LocateFrame  int           // questions in one frame
	UnsureAfter  time.Duration // when an unsettled slot grants although a member is missing; 0 is never
	QueryAfter   time.Duration // from gaining a slot to the first slot query
	QueryEvery   time.Duration
	TombstoneFor time.Duration // how long a released process address is remembered
	GuardFor     time.Duration // how long the end of a node hub's registration is
	Guards       int           // how many ends are remembered; beyond it the oldest go
}

// Defaults returns the sizes of protocol.md §7.
func Defaults() Config {
	return Config{
		Slots: DefaultSlots, RequestBound: time.Second, LocateBound: 600 * time.Millisecond,
		LocateQueue: 4096, LocateFrame: 1000, UnsureAfter: 2 * time.Second,
		QueryAfter: 30 * time.Millisecond, QueryEvery: 300 * time.Millisecond,
		TombstoneFor: 10 * time.Minute, GuardFor: 30 * time.Second, Guards: 65_536,
	}
}

package budget

import (
	"errors"
	"fmt"
	"time"
)

// Bound names one wait or one piece of shared work.
type Bound uint8

// The bounds. What each is for stands in the table below.
const (
	None Bound = iota
	Request
	Read
	Defer
	Resolve
	Activate
	Initialise
	StoreRead
	ForeignRead
	Confirm
	Ride
	Tell
	CatchUp
	Observe
	Commit
	Delete
	Quiesce
	HostedDispose
	Watchdog
	Teardown
	TokenCheck
	ContentIO
	Handshake
	SiloDial
	SiloWrite
	ClusterJoin
	ClusterLeave
	ClusterLinger
	Flush
	HTTPHeader
	HTTPShutdown
	HTTPBody
	count
)

type row struct {
	name string
	own  time.Duration
	// work marks a bound on shared work: it has a context of its own and is never cut because one
	// caller left, so it may be longer than a caller's wait (decision 5).
	work bool
	doc  string
}

// bounds is the one table. Its order is checked by [Table.Check] against nested below.
var bounds = [count]row{
	None:          {name: "context", doc: "the deadline of the context that the caller passed"},
	Request:       {name: "request", own: 60 * time.Second, doc: "an ask that names no other bound"},
	Read:          {name: "read", own: 10 * time.Second, doc: "a content read, from the edge to the owner and back"},
	Defer:         {name: "defer", own: 30 * time.Second, doc: "a message behind a closed gate"},
	Resolve:       {name: "resolve", own: 30 * time.Second, work: true, doc: "one path resolution, shared by all who wait for it"},
	Activate:      {name: "activate", own: 30 * time.Second, work: true, doc: "reading a node's row to start its hub"},
	Initialise:    {name: "initialise", own: 120 * time.Second, work: true, doc: "all initialisers of one hub"},
	StoreRead:     {name: "store-read", own: 5 * time.Second, work: true, doc: "one read of the store"},
	ForeignRead:   {name: "foreign-read", own: 2 * time.Second, work: true, doc: "one read of a row that another process has changed; what was changed later waits"},
	Confirm:       {name: "confirm", own: time.Second, doc: "asking the membership whether this silo is still the one to answer"},
	Ride:          {name: "ride", own: 3 * time.Second, doc: "asking again for a client while the silo of a node comes or goes"},
	Tell:          {name: "tell", own: 3 * time.Second, doc: "telling the other silos what was deleted or replaced, before it is acknowledged"},
	CatchUp:       {name: "catch-up", own: time.Second, doc: "hearing of what was committed until now, for another silo that waits"},
	Observe:       {name: "observe", own: time.Second, doc: "asking another silo what it has observed, for people"},
	Commit:        {name: "commit", own: 20 * time.Second, work: true, doc: "one group commit, queue included"},
	Delete:        {name: "delete", own: 30 * time.Second, doc: "deleting a subtree"},
	Quiesce:       {name: "quiesce", own: 2 * time.Second, doc: "waiting for a disposed hub's own asks"},
	HostedDispose: {name: "hosted-dispose", own: 5 * time.Second, doc: "waiting for hosted hubs to be gone"},
	Watchdog:      {name: "watchdog", own: 8 * time.Second, doc: "a hub's whole disposal; then it is torn down out of band"},
	Teardown:      {name: "teardown", own: 30 * time.Second, doc: "a process's whole disposal"},
	TokenCheck:    {name: "token-check", own: 8 * time.Second, doc: "validating a bearer token"},
	ContentIO:     {name: "content-io", own: 30 * time.Second, doc: "64 KiB of a file or an answer between disk and client"},
	Handshake:     {name: "handshake", own: 5 * time.Second, doc: "opening a connection"},
	SiloDial:      {name: "silo-dial", own: 2 * time.Second, doc: "opening a connection to a silo, handshake included"},
	SiloWrite:     {name: "silo-write", own: 5 * time.Second, doc: "one write to a silo that does not read"},
	ClusterJoin:   {name: "cluster-join", own: 30 * time.Second, work: true, doc: "a start that waits to stand in the membership"},
	ClusterLeave:  {name: "cluster-leave", own: 10 * time.Second, work: true, doc: "handing a leaving silo's node hubs over"},
	ClusterLinger: {name: "cluster-linger", own: 300 * time.Millisecond, doc: "a silo that has left answers what others still send to it"},
	Flush:         {name: "flush", own: 10 * time.Second, doc: "one write to a live stream's client"},
	HTTPHeader:    {name: "http-header", own: 10 * time.Second, doc: "reading a request's header"},
	HTTPShutdown:  {name: "http-shutdown", own: 10 * time.Second, doc: "letting running requests end at shutdown"},
	HTTPBody:      {name: "http-body", own: 30 * time.Second, doc: "reading the whole body of a request that is no upload"},
}

// nested lists which bound must be smaller than which: the first lapses inside the second.
var nested = [][2]Bound{
	{Read, Request}, {Defer, Request}, {TokenCheck, Read}, {StoreRead, TokenCheck}, {Confirm, StoreRead}, {ForeignRead, StoreRead}, {Confirm, Ride}, {Ride, Read}, {CatchUp, Tell}, {Observe, Read}, {Tell, Delete}, {StoreRead, Read},
	{StoreRead, Activate}, {StoreRead, Resolve}, {Activate, Initialise}, {Commit, Request}, {Commit, Delete}, {Delete, Request},
	{Quiesce, HostedDispose}, {HostedDispose, Watchdog}, {Watchdog, Teardown}, {Handshake, Read}, {SiloDial, Handshake}, {SiloWrite, Read}, {HTTPShutdown, Teardown},
	{HTTPHeader, HTTPBody}, {HTTPBody, Request}, {ContentIO, Request},
	{SiloDial, ClusterJoin}, {Watchdog, ClusterLeave}, {ClusterLeave, Teardown}, {ClusterLinger, ClusterLeave},
}

// known lists the pairs that stand the other way on purpose (edge.md C-7): shared work longer than one
// reader's wait. The reader gets the owner's early answer inside its own budget, and the work goes on.
var known = [][2]Bound{{Read, Defer}, {Read, Activate}, {Read, Resolve}, {Read, Initialise}}

func (b Bound) String() string {
	if b < count {
		return bounds[b].name
	}
	return fmt.Sprintf("bound(%d)", uint8(b))
}

// Doc says in a few words what the bound is for.
func (b Bound) Doc() string {
	if b < count {
		return bounds[b].doc
	}
	return ""
}

// Work tells whether the bound limits shared work instead of one caller's wait.
func (b Bound) Work() bool { return b < count && bounds[b].work }

// Named returns the bound with the given name.
func Named(name string) (Bound, bool) {
	for b := Bound(1); b < count; b++ {
		if bounds[b].name == name {
			return b, true
		}
	}
	return None, false
}

// All lists the bounds in table order.
func All() []Bound {
	all := make([]Bound, 0, count-1)
	for b := Bound(1); b < count; b++ {
		all = append(all, b)
	}
	return all
}

// Table is the size of every bound in one process. Copy it freely; it is read-only after Check.
type Table struct{ own [count]time.Duration }

// Defaults returns the sizes of the table in this file.
func Defaults() Table {
	var t Table
	for b := range bounds {
		t.own[b] = bounds[b].own
	}
	return t
}

// With returns the table with one bound changed.
func (t Table) With(b Bound, d time.Duration) Table {
	t.own[b] = d
	return t
}

// Own is the size of a bound.
func (t *Table) Own(b Bound) time.Duration {
	if b < count {
		return t.own[b]
	}
	return 0
}

// OrderError names a pair of bounds that stand in the wrong order.
type OrderError struct {
	Inner, Outer         Bound
	InnerSize, OuterSize time.Duration
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("bound '%s' (%v) must be shorter than bound '%s' (%v), inside which it lapses",
		e.Inner, e.InnerSize, e.Outer, e.OuterSize)
}

// Check returns every fault of the table at once: bounds that are not positive and pairs in the wrong
// order. A process does not start with a table that fails it.
func (t *Table) Check() error {
	var errs []error
	for b := Bound(1); b < count; b++ {
		if t.own[b] <= 0 {
			errs = append(errs, fmt.Errorf("bound '%s' must be positive, not %v", b, t.own[b]))
		}
	}
	for _, p := range nested {
		if t.own[p[0]] >= t.own[p[1]] {
			errs = append(errs, &OrderError{Inner: p[0], Outer: p[1], InnerSize: t.own[p[0]], OuterSize: t.own[p[1]]})
		}
	}
	return errors.Join(errs...)
}

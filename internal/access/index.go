package access

import (
	"cmp"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Change is one committed change of a node, as a change feed tells it. Deleted changes need Path and
// Version only; the others need the node.
type Change struct {
	Path    node.Path
	Version int64 // after the change; a deletion's own number
	Deleted bool
	Node    node.Node
}

// target is one subject at one scope.
type target struct {
	scope   node.Path
	subject Subject
}

// known is what the index remembers of one assignment node.
type known struct {
	version  int64
	assigned *Assignment // nil where the node counts for nothing
	deleted  bool        // kept only while the index loads
}

// Index keeps the current [Evaluator]. It is safe for concurrent use. Feed it every committed change
// from before [Index.Load] begins; changes and loaded nodes may arrive in any order, and the highest
// version of a path wins.
type Index struct {
	current atomic.Pointer[Evaluator]
	report  func(Problem)
	fed     func() bool // nil: always

	mu       sync.Mutex
	nodes    map[node.Path]known
	targets  map[target]map[node.Path]struct{} // the nodes that speak of a target
	problems map[node.Path]Problem
	accounts Accounts               // nil: every account can sign in
	guard    chan struct{}          // of one place: for a change by which somebody stops being Admin of the root scope
	held     map[node.Path]struct{} // assignments that no store holds; see Hold
	reserved map[*Change]struct{}   // admitted changes of root assignments that are not applied yet
	touched  map[node.Path]struct{} // paths that changed before the first load, or since the present one began; else nil

	listeners listeners
}

// NewIndex returns an index that is not loaded. Report is called for every assignment that counts for
// nothing although it was meant to, at each change of it; it may be nil and must not call the index.
func NewIndex(report func(Problem)) *Index {
	if report == nil {
		report = func(Problem) {}
	}
	x := &Index{
		report:   report,
		nodes:    map[node.Path]known{},
		targets:  map[target]map[node.Path]struct{}{},
		problems: map[node.Path]Problem{},
		guard:    make(chan struct{}, 1),
		held:     map[node.Path]struct{}{},
		reserved: map[*Change]struct{}{},
		touched:  map[node.Path]struct{}{},
	}
	x.current.Store(&Evaluator{seed: maphash.MakeSeed()})
	return x
}

// undetermined determines nothing.
var undetermined = &Evaluator{}

// DecideWhile has the index determine nothing while fed is false: whoever feeds it may be cut off from what others
// change. It is called before the index is used, and fed, which must be cheap, with every question.
func (x *Index) DecideWhile(fed func() bool) { x.fed = fed }

// Evaluator returns the snapshot of now; one that is not loaded where it may be too old to decide with.
func (x *Index) Evaluator() *Evaluator {
	if x.fed != nil && !x.fed() {
		return undetermined
	}
	return x.current.Load()
}

// Known returns the snapshot of what was heard of last, however old that is: to tell an operator what goes on, never to
// decide about a node.
func (x *Index) Known() *Evaluator { return x.current.Load() }

// Load reads every assignment that the store holds and makes the index able to decide. An error of the
// sequence leaves it as it was. Load may be called again, one at a time: what it then does not find, and what did not
// change meanwhile, is gone. nodes is read after Load has begun to note the changes.
func (x *Index) Load(nodes iter.Seq2[node.Node, error]) error {
	x.mu.Lock()
	if x.current.Load().loaded {
		x.touched = map[node.Path]struct{}{}
	}
	x.mu.Unlock()
	read := map[node.Path]node.Node{}
	for n, err := range nodes {
		if err != nil {
			return err
		}
		if _, ok := n.Path.Scope(); ok {
			read[n.Path] = n
		}
	}
	x.mu.Lock()
	for path, n := range read {
		seen, ok := x.nodes[path]
		_, changed := x.touched[path]
		// What did not change meanwhile is as it was read, also where a commit was lost and its version is lower.
		if !changed || ok && seen.version < n.Version {
			x.keep(n)
		}
	}
	for path := range x.nodes {
		_, found := read[path]
		_, changed := x.touched[path]
		_, held := x.held[path]
		if !found && !changed && !held {
			x.forget(path, 0)
		}
	}
	for path, k := range x.nodes { // deletions mattered only against a slower read
		if k.deleted {
			delete(x.nodes, path)
		}
	}
	x.touched = nil
	next := &Evaluator{loaded: true, seed: x.current.Load().seed}
	for t := range x.targets {
		next.set(t, x.sum(t), true)
	}
	x.current.Store(next)
	x.mu.Unlock()
	x.listeners.tell("")
	return nil
}

// Apply takes one committed change. What is no assignment is passed over at the cost of a look at its
// path. The listeners have been told when it returns.
func (x *Index) Apply(c Change) {
	scope, ok := c.Path.Scope()
	if !ok {
		return
	}
	x.mu.Lock()
	if x.touched != nil {
		x.touched[c.Path] = struct{}{}
	}
	old := x.nodes[c.Path]
	if c.Version != 0 && c.Version <= old.version {
		x.mu.Unlock()
		return
	}
	var touched []target
	if old.assigned != nil {
		touched = append(touched, old.assigned.target())
	}
	if c.Deleted {
		x.forget(c.Path, c.Version)
	} else {
		n := c.Node
		n.Path = c.Path
		if now := x.keep(n); now != nil && (old.assigned == nil || now.target() != touched[0]) {
			touched = append(touched, now.target())
		}
	}
	loaded := x.current.Load().loaded
	if loaded && len(touched) > 0 {
		next := x.current.Load().clone()
		for _, t := range touched {
			next.set(t, x.sum(t), false)
		}
		x.current.Store(next)
	}
	x.mu.Unlock()
	if loaded && len(touched) > 0 {
		x.listeners.tell(scope)
	}
}

// Hold takes an assignment that counts beside the stored ones for as long as the index lives, whatever is loaded. Its path
// must be one that no stored node can have.
func (x *Index) Hold(n node.Node) {
	x.mu.Lock()
	x.held[n.Path] = struct{}{}
	x.mu.Unlock()
	x.Apply(Change{Path: n.Path, Version: n.Version, Node: n})
}

// Subscribe calls fn with the scope of each change that altered a permission, after the new snapshot is
// in place; with the root scope when everything may have changed. Fn runs on the goroutine that applies
// the change, so it must be short and must not apply changes itself. Cancel returns when no call of fn
// runs any more; it must not be called from fn.
func (x *Index) Subscribe(fn func(scope node.Path)) (cancel func()) { return x.listeners.add(fn) }

// Problems lists the assignments that count for nothing although they were meant to, by path.
func (x *Index) Problems() []Problem {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := slices.Collect(maps.Values(x.problems))
	slices.SortFunc(list, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// keep remembers an assignment node in place of what was known of its path.
func (x *Index) keep(n node.Node) *Assignment {
	x.forget(n.Path, 0)
	assigned, problem, ok := parseAssignment(n)
	if problem != nil {
		x.problems[n.Path] = *problem
		x.report(*problem)
	}
	k := known{version: n.Version}
	if ok {
		k.assigned = &assigned
		t := assigned.target()
		if x.targets[t] == nil {
			x.targets[t] = map[node.Path]struct{}{}
		}
		x.targets[t][n.Path] = struct{}{}
	}
	x.nodes[n.Path] = k
	return k.assigned
}

// forget drops what is known of a path. While the index loads, a deletion's version is kept, so that a
// read that began earlier does not bring the node back.
func (x *Index) forget(path node.Path, version int64) {
	if old := x.nodes[path]; old.assigned != nil {
		t := old.assigned.target()
		delete(x.targets[t], path)
		if len(x.targets[t]) == 0 {
			delete(x.targets, t)
		}
	}
	delete(x.problems, path)
	delete(x.nodes, path)
	if version != 0 && !x.current.Load().loaded {
		x.nodes[path] = known{version: version, deleted: true}
	}
}

// sum adds up the assignments of a target.
func (x *Index) sum(t target) (sum entry) {
	for path := range x.targets[t] {
		sum = sum.add(*x.nodes[path].assigned)
	}
	return sum
}

func (a Assignment) target() target { return target{scope: a.Scope, subject: a.Subject} }

// clone copies the snapshot's table of shards; set copies what it writes to.
func (e *Evaluator) clone() *Evaluator {
	c := *e
	return &c
}

// set replaces one entry. Unless the evaluator is fresh and its maps are its own, they are copied.
func (e *Evaluator) set(t target, sum entry, fresh bool) {
	i := e.shard(t.subject)
	shard, of := e.shards[i], e.shards[i][t.subject]
	if !fresh {
		shard, of = maps.Clone(shard), maps.Clone(of)
	}
	if shard == nil {
		shard = map[Subject]scopes{}
	}
	if of == nil {
		of = scopes{}
	}
	if sum == (entry{}) {
		delete(of, t.scope)
	} else {
		of[t.scope] = sum
	}
	if len(of) == 0 {
		delete(shard, t.subject)
	} else {
		shard[t.subject] = of
	}
	e.shards[i] = shard
}

package membership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Epoch is one incarnation of a silo: random, new at each join, never 0 for a member. Epochs are
// compared for equality alone.
type Epoch uint64

func (e Epoch) String() string { return fmt.Sprintf("%016x", uint64(e)) }

// Key orders views. A greater timeline wins, then a greater number. The zero key is before every view.
type Key struct{ Timeline, Number uint64 }

// Compare is negative where k is older than o.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Timeline, o.Timeline), cmp.Compare(k.Number, o.Number))
}

// Before tells whether k is older than o.
func (k Key) Before(o Key) bool { return k.Compare(o) < 0 }

func (k Key) String() string { return fmt.Sprintf("%d.%d", k.Timeline, k.Number) }

// Member is one silo of a view.
type Member struct {
	Name    string // of the place; a silo that comes back keeps it
	Epoch   Epoch
	Addr    string // where its transport listens, host:port
	Leaving bool   // owns no slot and gets no placement, but still serves
	Types   []string
}

// Handles tells whether the silo handles a node type. A member without a list handles all.
func (m Member) Handles(nodeType string) bool {
	return m.Types == nil || slices.Contains(m.Types, nodeType)
}

func (m Member) String() string {
	if m.Leaving {
		return fmt.Sprintf("%s/%s leaving", m.Name, m.Epoch)
	}
	return fmt.Sprintf("%s/%s", m.Name, m.Epoch)
}

// View is the members at one key. It is immutable and may be shared. Methods on a nil view answer as
// an empty one whose key is before all others.
type View struct {
	key     Key
	members []Member
	byEpoch map[Epoch]int
}

// ErrView is what every error of [NewView] wraps.
var ErrView = errors.New("membership: not a view")

// NewView returns the view of the members at a key. It orders them by name and refuses members
// without a name or epoch, and names or epochs that stand twice.
func NewView(key Key, members []Member) (*View, error) {
	v := &View{key: key, members: slices.Clone(members), byEpoch: make(map[Epoch]int, len(members))}
	slices.SortFunc(v.members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for i, m := range v.members {
		switch _, twice := v.byEpoch[m.Epoch]; {
		case m.Name == "" || m.Epoch == 0:
			return nil, fmt.Errorf("%w: member %q has no name or no epoch", ErrView, m.Name)
		case twice:
			return nil, fmt.Errorf("%w: epoch %s stands twice", ErrView, m.Epoch)
		case i > 0 && v.members[i-1].Name == m.Name:
			return nil, fmt.Errorf("%w: name %q stands twice", ErrView, m.Name)
		}
		v.byEpoch[m.Epoch] = i
	}
	return v, nil
}

// Alone is the view of one process that has no cluster.
func Alone(m Member) *View {
	v, err := NewView(Key{Timeline: 1, Number: 1}, []Member{m})
	if err != nil {
		panic(err) // a caller without a name or an epoch
	}
	return v
}

// Key is the view's place in the order.
func (v *View) Key() Key {
	if v == nil {
		return Key{}
	}
	return v.key
}

// Members lists the members by name. The slice must not be changed.
func (v *View) Members() []Member {
	if v == nil {
		return nil
	}
	return v.members
}

// Has tells whether an incarnation is a member, leaving or not.
func (v *View) Has(e Epoch) bool {
	_, ok := v.Member(e)
	return ok
}

// Member returns the member of an epoch.
func (v *View) Member(e Epoch) (Member, bool) {
	if v == nil {
		return Member{}, false
	}
	i, ok := v.byEpoch[e]
	if !ok {
		return Member{}, false
	}
	return v.members[i], true
}

func (v *View) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s [", v.Key())
	for i, m := range v.Members() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(m.String())
	}
	return b.String() + "]"
}

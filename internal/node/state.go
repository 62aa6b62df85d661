package node

import (
	"strconv"
	"strings"
)

// State is the lifecycle state of a node; its numbers are stored.
type State int8

// The states of a node (data.md §1.1).
const (
	StateNew       State = 0
	StateTransient State = 1
	StateActive    State = 2
	StateRejected  State = 3
	StateDeleted   State = 4
)

var stateNames = [...]string{"New", "Transient", "Active", "Rejected", "Deleted"}

// String returns the name of the state.
func (s State) String() string { return enumName(stateNames[:], int(s)) }

// ParseState reads a state by its name, in any letter case, or by its number.
func ParseState(text string) (State, bool) {
	i, ok := parseEnum(stateNames[:], text)
	return State(i), ok
}

// SyncBehavior says whether synchronisation with another instance takes the node along; its numbers
// are stored.
type SyncBehavior int8

// The synchronisation behaviours of a node (data.md §1.1).
const (
	SyncInclude            SyncBehavior = 0
	SyncExcludeThisOnly    SyncBehavior = 1
	SyncExcludeThisAndKids SyncBehavior = 2
)

var syncNames = [...]string{"Include", "ExcludeThisOnly", "ExcludeThisAndChildren"}

// String returns the name of the behaviour.
func (b SyncBehavior) String() string { return enumName(syncNames[:], int(b)) }

// ParseSyncBehavior reads a behaviour by its name, in any letter case, or by its number.
func ParseSyncBehavior(text string) (SyncBehavior, bool) {
	i, ok := parseEnum(syncNames[:], text)
	return SyncBehavior(i), ok
}

func enumName(names []string, i int) string {
	if i >= 0 && i < len(names) {
		return names[i]
	}
	return strconv.Itoa(i)
}

func parseEnum(names []string, text string) (int, bool) {
	for i, name := range names {
		if strings.EqualFold(name, text) || text == strconv.Itoa(i) {
			return i, true
		}
	}
	return 0, false
}

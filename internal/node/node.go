package node

import (
	"time"
)

// Node is one versioned record of the mesh (data.md §1.1). A Node that has been posted, stored or
// handed out is immutable: a writer copies the struct and replaces fields. ExcludeFromContext is
// never modified in place.
type Node struct {
	Path     Path // key; namespace and id are derived from it, never stored beside it
	MainNode Path // the node that this one is a satellite of; equal to Path for every other node

	NodeType string // path or name of the type; "" is untyped
	Name     string
	// Description, Category, Icon, Order and PreRenderedHTML are presentation only.
	Description     string
	Category        string
	Icon            string
	Order           *int
	PreRenderedHTML string

	Content Content

	Version int64 // minted by the owner only; 0 is "not minted yet"
	State   State

	CreatedAt  time.Time // UTC, microseconds; creation stamps survive every update
	CreatedBy  string
	ModifiedAt time.Time
	ModifiedBy string

	DesiredID          string
	ExcludeFromContext []string // of: search, create, autocomplete, browse, header
	SyncBehavior       SyncBehavior
}

// IsSatellite tells whether the node belongs to another one (data.md §1.1).
func (n Node) IsSatellite() bool { return n.MainNode != n.Path }

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

// SyncBehavior says whether synchronisation with another instance takes the node along; its numbers
// are stored.
type SyncBehavior int8

// The synchronisation behaviours of a node (data.md §1.1).
const (
	SyncInclude            SyncBehavior = 0
	SyncExcludeThisOnly    SyncBehavior = 1
	SyncExcludeThisAndKids SyncBehavior = 2
)

// Well-known node types. A type is itself a node; these need none.
const (
	TypeSpace            = "Space"            // owns a partition
	TypeUser             = "User"             // owns a partition
	TypeNodeType         = "NodeType"         // a type definition: its content may hold a JSON Schema
	TypeMarkdown         = "Markdown"         // content {"$type":"Markdown","markdown":"…"}
	TypeAccessAssignment = "AccessAssignment" // content {accessObject, roles[{role, denied}]}
	TypeActivity         = "Activity"         // a long-running piece of work
)

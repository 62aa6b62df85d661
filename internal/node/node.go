package node

import (
	"slices"
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

// SameAs tells whether other is the same record but for what the owner stamps: version, creation and
// modification. It is the proof of a change that mints a version (data.md §1.3.1); contents compare
// as [Equal] does (§1.1).
func (n Node) SameAs(other Node) bool {
	return n.Path == other.Path && n.MainNode == other.MainNode &&
		n.NodeType == other.NodeType && n.Name == other.Name &&
		n.Description == other.Description && n.Category == other.Category && n.Icon == other.Icon &&
		equalOrder(n.Order, other.Order) && n.PreRenderedHTML == other.PreRenderedHTML &&
		n.State == other.State && n.DesiredID == other.DesiredID && n.SyncBehavior == other.SyncBehavior &&
		slices.Equal(n.ExcludeFromContext, other.ExcludeFromContext) &&
		Equal(n.Content, other.Content)
}

// WithWritable returns n with every field that a caller may write taken from other; path, version and
// stamps stay (docs/api.md, PUT).
func (n Node) WithWritable(other Node) Node {
	other.Path, other.Version = n.Path, n.Version
	other.CreatedAt, other.CreatedBy = n.CreatedAt, n.CreatedBy
	other.ModifiedAt, other.ModifiedBy = n.ModifiedAt, n.ModifiedBy
	return other
}

func equalOrder(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Stamp is t as nodes keep times: UTC, microseconds.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Well-known node types. A type is itself a node; these need none.
const (
	TypeSpace            = "Space"            // owns a partition
	TypeUser             = "User"             // owns a partition
	TypeNodeType         = "NodeType"         // a type definition: its content may hold a JSON Schema
	TypeMarkdown         = "Markdown"         // content {"$type":"Markdown","markdown":"…"}
	TypeAccessAssignment = "AccessAssignment" // content {accessObject, roles[{role, denied}]}
	TypeActivity         = "Activity"         // a long-running piece of work
)

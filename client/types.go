package client

import (
	"encoding/json"
	"time"
)

// Node is one node. Empty fields are left out of requests; the version and the stamps are the server's.
type Node struct {
	Path               string          `json:"path,omitempty"`
	ID                 string          `json:"id,omitempty"`
	Namespace          string          `json:"namespace,omitempty"`
	MainNode           string          `json:"mainNode,omitempty"`
	NodeType           string          `json:"nodeType,omitempty"`
	Name               string          `json:"name,omitempty"`
	Description        string          `json:"description,omitempty"`
	Category           string          `json:"category,omitempty"`
	Icon               string          `json:"icon,omitempty"`
	Order              *int            `json:"order,omitempty"`
	PreRenderedHTML    string          `json:"preRenderedHtml,omitempty"`
	Content            json.RawMessage `json:"content,omitempty"`
	Version            int64           `json:"version,omitempty"`
	State              string          `json:"state,omitempty"`
	CreatedDate        time.Time       `json:"createdDate,omitzero"`
	CreatedBy          string          `json:"createdBy,omitempty"`
	LastModified       time.Time       `json:"lastModified,omitzero"`
	LastModifiedBy     string          `json:"lastModifiedBy,omitempty"`
	DesiredID          string          `json:"desiredId,omitempty"`
	ExcludeFromContext []string        `json:"excludeFromContext,omitempty"`
	SyncBehavior       string          `json:"syncBehavior,omitempty"`
}

// Child is one line of a listing. Version is 0 for a level that has no node, or none to read.
type Child struct {
	Path        string `json:"path"`
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	NodeType    string `json:"nodeType,omitempty"`
	Icon        string `json:"icon,omitempty"`
	Order       *int   `json:"order,omitempty"`
	Version     int64  `json:"version"`
	HasChildren bool   `json:"hasChildren"`
}

// Version is one line of a history.
type Version struct {
	Version int64     `json:"version"`
	Kind    string    `json:"kind"` // created, updated or deleted
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Name    string    `json:"name,omitempty"`
}

// Outcome is the result of one node of many: a version, or the problem.
type Outcome struct {
	Path    string         `json:"path"`
	Version int64          `json:"version,omitempty"`
	Error   map[string]any `json:"error,omitempty"`
}

// Result is what a query found.
type Result struct {
	Nodes     []Node `json:"nodes"`
	Truncated bool   `json:"truncated"`
}

// Deletion is what a delete took.
type Deletion struct {
	Deleted int64 `json:"deleted"`
	Version int64 `json:"version"` // of the tombstone
	// Untold are silos that may still answer for what was deleted for a moment, and why: a bound fired before they had
	// heard of it.
	Untold []string `json:"untold,omitempty"`
}

// Identity is who the caller is.
type Identity struct {
	Subject   string `json:"subject"`
	Name      string `json:"name"`
	Anonymous bool   `json:"anonymous"`
	Admin     bool   `json:"admin"`
}

// Token is what may be shown of a token.
type Token struct {
	ID        string    `json:"id"`
	Subject   string    `json:"subject"`
	Name      string    `json:"name,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	LastUsed  time.Time `json:"lastUsed,omitzero"`
	Revoked   bool      `json:"revoked,omitempty"`
}

// NewToken is a token that was just made: the one time that its secret is told.
type NewToken struct {
	Token string `json:"token"`
	ID    string `json:"id"`
}

// Import says what to import. The folders are the server's.
type Import struct {
	Source  string `json:"source"`
	Into    string `json:"into,omitempty"`
	Content string `json:"content,omitempty"`
}

// Uploaded is a file that was stored.
type Uploaded struct {
	URL  string `json:"url"`
	Size int64  `json:"size"`
	ETag string `json:"etag"` // for FileIf; "" for a file that is too large to have one
}

package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Every method below acts for the identity in its context, checks what that may do, observes the end of
// the context, and answers typed errors (mapping.go). What the caller may not read is answered like what
// is not there.

// Condition makes a write depend on what is stored. The zero value is "whatever is there".
type Condition struct {
	Version int64 // the version that must be stored (If-Match); 0 is none
	Absent  bool  // there must be no node (If-None-Match: *)
	Present bool  // there must be a node (If-Match: *)
}

// Nodes reads and writes one node.
type Nodes interface {
	Get(ctx context.Context, path node.Path) (node.Node, error)
	Create(ctx context.Context, n node.Node) (node.Node, error)
	Put(ctx context.Context, n node.Node, cond Condition) (got node.Node, created bool, err error)
	Patch(ctx context.Context, path node.Path, patch []byte, cond Condition) (node.Node, error)
	Delete(ctx context.Context, path node.Path, recursive bool, cond Condition) (Deletion, error)
}

// Deletion says what a delete took.
type Deletion struct {
	Deleted int      `json:"deleted"` // how many nodes
	Version int64    `json:"version"` // of the tombstone at the path
	Untold  []string `json:"untold,omitempty"`
}

// Outcome is the result of one node of many.
type Outcome struct {
	Path    node.Path
	Version int64
	Err     error
}

// Bulk creates many nodes, each with its own outcome in the order of nodes. The error is of the whole:
// nothing was created.
type Bulk interface {
	CreateMany(ctx context.Context, nodes []node.Node) ([]Outcome, error)
}

// Tree lists and searches.
type Tree interface {
	// Children returns the listing and where the next page starts, "" at the end.
	Children(ctx context.Context, path node.Path, page store.Page) (entries []store.Entry, next string, err error)
	Versions(ctx context.Context, path node.Path, page store.VersionPage) ([]store.VersionInfo, error)
	At(ctx context.Context, path node.Path, version int64) (node.Node, error)
	Query(ctx context.Context, q query.Query) (nodes []node.Node, truncated bool, err error)
}

// Renderer makes sanitised HTML.
type Renderer interface {
	Render(ctx context.Context, path node.Path) (html string, version int64, err error)
	// RenderText renders markdown as if it were the document of the node at path.
	RenderText(ctx context.Context, path node.Path, markdown string) (html string, err error)
}

// FrameKind says what a frame is.
type FrameKind uint8

// The kinds of frames.
const (
	Full    FrameKind = iota + 1 // Node is the whole
	Patch                        // Patch turns version BasedOn into Version
	Deleted                      // the node is gone, at tombstone Version
	Current                      // first frame only: the caller has the current version
)

// Frame is one step of a watched node.
type Frame struct {
	Kind    FrameKind
	Version int64
	Stamp   string // in digits to base 36: tells the row of Version from one that takes its place after a loss; "" is none
	BasedOn int64
	Node    node.Node
	Patch   node.Content
	Reset   bool // of a Full or Deleted: what the reader holds was lost, so that Version may be lower
}

// Held is what a client says that it holds of a node: a version, 0 for nothing, and the stamp of that row, "" where it
// does not know.
type Held struct {
	Version int64
	Stamp   string
}

// Turn is a connection's: what a watch makes for it is made in its turn, one thing at a time, and written before
// the next one is made.
type Turn interface {
	Begin(ctx context.Context) error
	End()
}

// Watcher follows things. Each method calls emit from one goroutine at a time, first as soon as it knows
// the state, and returns when ctx ends, when emit returns an error (which it returns), or when the
// subscription ends: the error is then the reason, such as a withdrawn permission. Emit blocks while the
// client is slow, so a watcher keeps the latest state only.
type Watcher interface {
	// Watch starts from what is held after, if that is still kept. Where another row stands at that version, the first
	// frame is whole and has Reset.
	Watch(ctx context.Context, path node.Path, after Held, turn Turn, emit func(Frame) error) error
	WatchChildren(ctx context.Context, path node.Path, turn Turn, emit func([]store.Entry) error) error
	WatchQuery(ctx context.Context, q query.Query, turn Turn, emit func(nodes []node.Node, truncated bool) error) error
}

// File is an opened file. The receiver closes Body.
type File struct {
	Name     string // for its media type and for a download
	Size     int64
	Modified time.Time
	ETag     string // strong, where the opener knows it; else it is computed for files below 10,000,000 bytes
	Body     io.ReadSeekCloser
}

// Content opens a published file for reading. Segments are the decoded and checked segments of
// {node}/{collection}/{file} (CR-3).
type Content interface {
	Open(ctx context.Context, segments []string) (*File, error)
}

// FileEntry is one line of a listing of files.
type FileEntry struct {
	Name     string    `json:"name"`
	Dir      bool      `json:"dir"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
	URL      string    `json:"url,omitempty"`
}

// FileCondition makes a change of a file depend on the one that is there. Tags are as in the headers, "*" included.
// The zero value is "whatever is there".
type FileCondition struct {
	Match     []string  // If-Match
	NoneMatch []string  // If-None-Match
	Unchanged time.Time // If-Unmodified-Since
}

// StoredFile is an uploaded file.
type StoredFile struct {
	URL     string
	Size    int64
	ETag    string // as reads give it; "" for none
	Created bool
}

// Files lists and changes the files of a node. A condition and the change that it is about are one: no other
// change comes between them. One that does not hold is "stale".
type Files interface {
	List(ctx context.Context, path node.Path, collection, dir string) ([]FileEntry, error)
	// Write takes the whole body or nothing; a failing read of the body is its error.
	Write(ctx context.Context, segments []string, body io.Reader, cond FileCondition) (StoredFile, error)
	Remove(ctx context.Context, segments []string, cond FileCondition) error
}

// ImportRequest says what to import.
type ImportRequest struct {
	Source  string `json:"source"`            // a folder on the server
	Into    string `json:"into,omitempty"`    // the path below which; empty: top-level folders are partitions
	Content string `json:"content,omitempty"` // a folder of files
}

// Importer starts an import and returns the path of its activity node, which exists.
type Importer interface {
	Import(ctx context.Context, r ImportRequest) (activity node.Path, err error)
}

// Inspector tells what this process, and the silos that it asks, have observed. The results are marshalled as they are.
type Inspector interface {
	Why(ctx context.Context, address string) (any, error)
	Lapses(ctx context.Context) (any, error)
	// Cluster asks every silo; a process that is none tells of itself.
	Cluster(ctx context.Context) (any, error)
}

// Rights tells what the caller holds beyond one node.
type Rights interface {
	// IsAdmin tells whether the caller is Admin of the root scope; an error is "undetermined".
	IsAdmin(ctx context.Context) (bool, error)
	// WasAdmin tells whether the caller was Admin of the root scope by what was heard of last: for operations that tell
	// what goes on, where IsAdmin can not say.
	WasAdmin(ctx context.Context) bool
	// HoldsNothing tells whether the caller is a visitor to whom nothing is granted, anywhere.
	HoldsNothing(ctx context.Context) bool
}

// Caller finds out who sent a request: never nil without an error (CR-2), and with which credential,
// which is nil for a visitor without one.
type Caller interface {
	Authenticate(r *http.Request) (*message.Identity, Credential, error)
	// AsKnown is Authenticate by what was known last of the credential, where its record can not be looked up.
	AsKnown(r *http.Request) (*message.Identity, Credential, error)
}

// Credential is what a request was let in with. Over is closed as soon as it does not count any more:
// revoked, logged out or expired. Follow fails when it does not by now. Release is called once.
type Credential interface {
	Follow(ctx context.Context) (over <-chan struct{}, release func(), err error)
}

// Sessions turns login codes into cookies.
type Sessions interface {
	Login(r *http.Request, code string) (*http.Cookie, error)
	Logout(r *http.Request) (*http.Cookie, error)
}

// Tokens keeps API tokens.
type Tokens interface {
	Issue(ctx context.Context, subject, name string) (token, id string, err error)
	Revoke(ctx context.Context, id string) error
}

// TokenLister lists tokens; the result, {"tokens": […]}, is marshalled as it is.
type TokenLister interface {
	ListTokens(ctx context.Context) (any, error)
}

// Readiness names what a start still waits for; nothing is ready.
type Readiness interface {
	Waiting(ctx context.Context) []string
}

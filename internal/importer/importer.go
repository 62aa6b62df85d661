package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/activity"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Nodes writes what an import brings.
type Nodes interface {
	Get(ctx context.Context, path node.Path) (node.Node, error)
	Create(ctx context.Context, n node.Node) (node.Node, error)
	Import(ctx context.Context, nodes []node.Node) ([]nodehub.Outcome, error)
	KnowsType(ctx context.Context, name string) (bool, error)
	EnsureCollection(ctx context.Context, at node.Path, c nodehub.Collection) error
	Require(ctx context.Context, path node.Path, need access.Permission) error
}

// Contents takes content files, or fails with [Closed].
type Contents interface {
	CopyIn(ctx context.Context, owner node.Path, name, dir string, src fs.FS, skip func(file string, err error)) (copied, same int, err error)
}

// Closed is the error of a collection that takes no files. The import goes on without them.
type Closed interface {
	error
	TakesNoUploads()
}

// Options configure a service.
type Options struct {
	Mesh    *hub.Mesh
	Nodes   Nodes
	Store   store.Store // its side table keeps the fingerprints
	Content Contents
	Work    *activity.Runner
	Limits  node.Limits
	Logger  *slog.Logger
}

// Service imports folders. It is safe for concurrent use.
type Service struct{ o Options }

// New returns a service.
func New(o Options) *Service { return &Service{o} }

// Request says what to import.
type Request struct {
	Source  fs.FS     // node files; nil when only content is imported
	Name    string    // what the source is called, for people
	Into    node.Path // the path below which; "": the top-level folders are partitions
	Content fs.FS     // content files: the top-level folders are nodes (below Into, if set); may be nil
}

// SourceError says that a folder can not be imported.
type SourceError struct {
	Dir    string
	Reason string
}

func (e *SourceError) Error() string { return fmt.Sprintf("'%s': %s", e.Dir, e.Reason) }

// ProblemCode is the code of the error table.
func (e *SourceError) ProblemCode() string { return "bad_request" }

// Folder opens a folder of this machine for an import; links do not leave it.
func Folder(dir string) (fs.FS, error) {
	if !filepath.IsAbs(dir) {
		return nil, &SourceError{dir, "name the folder by its absolute path on the server"}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &SourceError{dir, "there is no such folder on the server"}
	case err != nil:
		return nil, &SourceError{dir, err.Error()}
	case !info.IsDir():
		return nil, &SourceError{dir, "it is not a folder"}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &SourceError{dir, err.Error()}
	}
	return newFolder(root), nil
}

// Start begins an import as an activity, for the identity in ctx, and returns the activity's path. The
// caller must hold Admin at the root scope.
func (s *Service) Start(ctx context.Context, r Request) (node.Path, error) {
	if err := s.o.Nodes.Require(ctx, "", access.Administer); err != nil {
		return "", err
	}
	plan, err := s.plan(ctx, r)
	if err != nil {
		return "", err
	}
	if err := plan.ensureSpaces(ctx); err != nil {
		return "", err
	}
	owner, err := plan.owner(ctx)
	if err != nil {
		return "", err
	}
	title := "Import of " + r.Name
	if r.Into != "" {
		title += " into " + string(r.Into)
	}
	return s.o.Work.Start(ctx, owner, title, plan.run)
}

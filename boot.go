package hubmesh

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/importer"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// GuideSpace is the space that a first start fills with the documentation.
const GuideSpace = "Guide"

// insistEvery is the pause between two attempts at what a silo could not do for the moment.
const insistEvery = 50 * time.Millisecond

// insist does what a start needs again and again while it is refused for the moment, as it may be while silos come
// and go, within the bound of a join.
func (m *Mesh) insist(ctx context.Context, f func() error) error {
	bound, cancel := m.hubs.Bounds().Context(ctx, budget.ClusterJoin, "start")
	defer cancel()
	for {
		err := f()
		if t, known := message.TypeOf(err); m.silo == nil || err == nil || !known || t != message.ShuttingDown {
			return err
		}
		t := time.NewTimer(insistEvery)
		select {
		case <-t.C:
		case <-bound.Done():
			t.Stop()
			return err
		}
	}
}

// publicPath is where the grant of [Mesh.PublicRead] counts: "~" is in no path of a node.
const publicPath = node.Path("_Access/~public-read")

// PublicRead lets visitors without credentials read everything but assignments, as long as this process
// runs: the grant is not stored, and counts beside the assignments that are. One that denies visitors something stands,
// and is told of in the log where that is everything.
func (m *Mesh) PublicRead() {
	m.access.Hold(node.Node{Path: publicPath, NodeType: node.TypeAccessAssignment, State: node.StateActive, Version: 1,
		Content: nodehub.AssignmentContent(message.SubjectAnonymous, "Viewer")})
	if m.access.Evaluator().Check(access.Anonymous, "", access.Read) != access.Granted {
		m.log.Warn("visitors can not read although public reading is asked for: an assignment at the root scope denies it to them; remove the denial",
			"assignments", m.access.RootDenials(access.Anonymous))
	}
}

// ImportFS imports a tree as an activity, for the identity in ctx, and returns the activity's path. The
// caller must be Admin of the root scope. into is the path below which, "" to take the top-level
// folders as partitions; files are content files by node, or nil.
func (m *Mesh) ImportFS(ctx context.Context, name string, src fs.FS, into string, files fs.FS) (string, error) {
	p, err := m.importer.Start(ctx, importer.Request{Source: src, Name: name, Into: node.Path(into), Content: files})
	return string(p), err
}

// BootGuide imports the documentation at the first start, once for all processes of the mesh.
func (m *Mesh) BootGuide(ctx context.Context, files fs.FS) error {
	if empty, err := m.IsEmpty(ctx); err != nil || !empty {
		return err
	}
	if m.isShared {
		_, err := m.nodes.Create(AsSystem(ctx), node.Node{Path: GuideSpace, NodeType: node.TypeSpace, Name: GuideSpace})
		if errors.As(err, new(*store.ExistsError)) {
			return nil // another process was first, and imports it
		}
		if err != nil {
			return err
		}
	}
	_, err := m.BootImport("the guide", files, GuideSpace, nil)
	return err
}

// BootImport imports a tree as the first Admin, in the background; the mesh is not ready until it has
// settled. It returns the activity's path. Where the first Admin is none any more, the mesh itself imports: what a
// start is told to do is its operator's will.
func (m *Mesh) BootImport(name string, src fs.FS, into string, contentFS fs.FS) (string, error) {
	who := &message.Identity{Subject: adminSubject, Name: "Admin"}
	if !slices.Contains(m.access.RootAdmins(), adminSubject) {
		who = message.SystemIdentity()
	}
	ctx := message.WithIdentity(m.hubs.Context(), who)
	done := m.bootWork.begin("import of " + name)
	p, err := m.importer.Start(ctx, importer.Request{Source: src, Name: name, Into: node.Path(into), Content: contentFS})
	if err != nil {
		done()
		return "", err
	}
	m.hubs.Go(func() {
		defer done()
		m.work.Wait(ctx, p)
	})
	return string(p), nil
}

// BootImportFolder is BootImport of a folder of this machine.
func (m *Mesh) BootImportFolder(dir, into, contentDir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	src, err := importer.Folder(abs)
	if err != nil {
		return "", err
	}
	var files fs.FS
	if contentDir != "" {
		if contentDir, err = filepath.Abs(contentDir); err != nil {
			return "", err
		}
		if files, err = importer.Folder(contentDir); err != nil {
			return "", err
		}
	}
	return m.BootImport(dir, src, into, files)
}

// IsEmpty tells whether the mesh has no space yet.
func (m *Mesh) IsEmpty(ctx context.Context) (bool, error) {
	list, err := m.store.Partitions(ctx)
	for _, p := range list {
		if p.Name != "_Access" {
			return false, err
		}
	}
	return true, err
}

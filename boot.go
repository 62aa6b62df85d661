package hubmesh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/auth"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/importer"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// adminSubject is who the token of the first start speaks as.
const adminSubject = "admin"

// GuideSpace is the space that a first start fills with the documentation.
const GuideSpace = "Guide"

// AdminToken sees to it that there is an Admin of the root scope and a token that speaks as it. The
// token is written to file, mode 0600, when the file is not there yet; created tells so. A file that is
// there must hold a token that is good in this mesh: nobody is to find out later that it is not. Whoever
// may write that file owns the mesh.
func (m *Mesh) AdminToken(ctx context.Context, file string) (created bool, err error) {
	ctx = AsSystem(ctx)
	path := node.Path("_Access/" + adminSubject + "_Access")
	if n, err := m.store.Read(ctx, path); err == nil {
		// Another process may have written it a moment ago: it counts here from now on, and not from when it is heard of.
		m.access.Apply(access.Change{Path: path, Version: n.Version, Node: n})
	} else if errors.As(err, new(*store.NotFoundError)) {
		if err := m.insist(ctx, func() error { return m.nodes.Grant(ctx, "", adminSubject, "Admin") }); err != nil {
			return false, fmt.Errorf("granting the first Admin: %w", err)
		}
	} else {
		return false, err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if created, err = m.writeAdminToken(ctx, file); created || err != nil {
			return created, err
		}
		text, err = os.ReadFile(file) // another process of this mesh was first
	}
	if err != nil {
		return false, fmt.Errorf("admin token file: %w; remove what is there, or name another file", err)
	}
	return false, m.checkAdminToken(ctx, file, strings.TrimSpace(string(text)))
}

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

// writeAdminToken makes a token and its file, whole or not at all. created is false where a file is there by
// now.
func (m *Mesh) writeAdminToken(ctx context.Context, file string) (created bool, err error) {
	fail := func(err error) (bool, error) { return false, fmt.Errorf("admin token file: %w", err) }
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fail(err)
	}
	f, err := os.OpenFile(file+"."+m.id, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	token, id, err := m.auth.Tokens.Issue(ctx, adminSubject, "first start")
	if err == nil {
		_, err = f.WriteString(token + "\n")
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fail(err)
	}
	err = os.Link(f.Name(), file)
	if errors.Is(err, fs.ErrExist) {
		return false, m.auth.Tokens.Revoke(ctx, id)
	}
	if err != nil {
		return fail(err)
	}
	return true, nil
}

// checkAdminToken refuses a file without a good token, and says what to do.
func (m *Mesh) checkAdminToken(ctx context.Context, file, token string) error {
	_, err := m.auth.Tokens.Check(ctx, token)
	if err == nil || !errors.As(err, new(*auth.UnauthenticatedError)) {
		return err
	}
	return fmt.Errorf("admin token file: '%s' holds no token that is good in this mesh; remove the file, and the next start writes a new one, or name another file", file)
}

// LoginCode returns a code that works once, within ten minutes, to sign a browser in as the first
// Admin.
func (m *Mesh) LoginCode() (string, error) { return m.auth.Sessions.NewCode(adminSubject, "Admin") }

// PublicRead lets visitors without credentials read everything but assignments, as long as this process
// runs: the grant is not stored.
func (m *Mesh) PublicRead() {
	path := node.Path("_Access/" + message.SubjectAnonymous + "_Access")
	m.access.Apply(access.Change{Path: path, Version: 1, Node: node.Node{Path: path, NodeType: node.TypeAccessAssignment, State: node.StateActive,
		Content: nodehub.AssignmentContent(message.SubjectAnonymous, "Viewer")}})
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
// settled. It returns the activity's path.
func (m *Mesh) BootImport(name string, src fs.FS, into string, contentFS fs.FS) (string, error) {
	ctx := message.WithIdentity(m.hubs.Context(), &message.Identity{Subject: adminSubject, Name: "Admin"})
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

package hubmesh

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/content"
	"github.com/hubmesh/hubmesh/internal/httpapi"
	"github.com/hubmesh/hubmesh/internal/importer"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/mirror"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// The types below put the services of the mesh behind the interfaces that the HTTP layer owns. They
// translate and decide nothing.

type nodesAPI struct{ m *Mesh }

func (a nodesAPI) Get(ctx context.Context, path node.Path) (node.Node, error) {
	return ride(ctx, a.m.hubs.Bounds(), alsoLost, func() (node.Node, error) { return a.m.nodes.Get(ctx, path) })
}

func (a nodesAPI) Create(ctx context.Context, n node.Node) (node.Node, error) {
	return ride(ctx, a.m.hubs.Bounds(), onlyUnsent, func() (node.Node, error) { return a.m.nodes.Create(ctx, n) })
}

func (a nodesAPI) Put(ctx context.Context, n node.Node, cond httpapi.Condition) (stored node.Node, created bool, err error) {
	stored, err = ride(ctx, a.m.hubs.Bounds(), onlyUnsent, func() (node.Node, error) {
		got, made, err := a.m.nodes.Put(ctx, n, nodehub.Condition(cond))
		created = made
		return got, err
	})
	return stored, created, err
}

func (a nodesAPI) Patch(ctx context.Context, path node.Path, patch []byte, cond httpapi.Condition) (node.Node, error) {
	return ride(ctx, a.m.hubs.Bounds(), onlyUnsent, func() (node.Node, error) {
		return a.m.nodes.Patch(ctx, path, patch, nodehub.Condition(cond))
	})
}

func (a nodesAPI) Delete(ctx context.Context, path node.Path, recursive bool, cond httpapi.Condition) (httpapi.Deletion, error) {
	remove := func() (*nodehub.DeleteReply, error) {
		return a.m.nodes.Delete(ctx, path, recursive, nodehub.Condition(cond))
	}
	var r *nodehub.DeleteReply
	var err error
	if recursive { // a part of it may be done, and would not be counted
		r, err = remove()
	} else {
		r, err = ride(ctx, a.m.hubs.Bounds(), onlyUnsent, remove)
	}
	if err != nil {
		return httpapi.Deletion{}, err
	}
	return httpapi.Deletion(*r), nil
}

func (a nodesAPI) CreateMany(ctx context.Context, nodes []node.Node) ([]httpapi.Outcome, error) {
	out, err := a.m.nodes.CreateMany(ctx, nodes)
	if err != nil {
		return nil, err
	}
	list := make([]httpapi.Outcome, len(out))
	for i, o := range out {
		list[i] = httpapi.Outcome{Path: o.Path, Version: o.Version, Err: o.Err}
	}
	return list, nil
}

func (a nodesAPI) Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, string, error) {
	return a.m.nodes.Children(ctx, path, page)
}

func (a nodesAPI) Versions(ctx context.Context, path node.Path, page store.VersionPage) ([]store.VersionInfo, error) {
	return a.m.nodes.Versions(ctx, path, page)
}

func (a nodesAPI) At(ctx context.Context, path node.Path, version int64) (node.Node, error) {
	return a.m.nodes.At(ctx, path, version)
}

// maxRows bounds the rows of one query over HTTP.
const maxRows = 1000

// Query asks for one row more than it returns, to tell whether there are more.
func (a nodesAPI) Query(ctx context.Context, q query.Query) ([]node.Node, bool, error) {
	most := maxRows
	if l := q.Limit(); l > 0 && l < most {
		most = l
	}
	nodes, err := a.m.nodes.Select(ctx, q.WithLimit(most+1))
	if err != nil || len(nodes) <= most {
		return nodes, false, err
	}
	return nodes[:most], true, nil
}

type watchAPI struct{ m *Mesh }

func (a watchAPI) Watch(ctx context.Context, path node.Path, after httpapi.Held, turn httpapi.Turn, emit func(httpapi.Frame) error) error {
	w, err := a.m.mirrors.Resume(ctx, path, after.Version, after.Stamp)
	if err != nil {
		return err
	}
	defer w.Close()
	w.InTurn(turn)
	defer w.Done()
	for {
		f, err := w.Next(ctx)
		if err != nil {
			return err
		}
		kind := map[mirror.FrameKind]httpapi.FrameKind{mirror.Full: httpapi.Full, mirror.Patch: httpapi.Patch, mirror.Deleted: httpapi.Deleted, mirror.Current: httpapi.Current}[f.Kind]
		if err := emit(httpapi.Frame{Kind: kind, Version: f.Version, Stamp: f.Stamp, BasedOn: f.BasedOn, Node: f.Node, Patch: f.Patch, Reset: f.Reset}); err != nil {
			return err
		}
	}
}

func (a watchAPI) WatchChildren(ctx context.Context, path node.Path, turn httpapi.Turn, emit func([]store.Entry) error) error {
	l, err := a.m.mirrors.Listing(ctx, path, store.Page{Limit: 10_000})
	if err != nil {
		return err
	}
	defer l.Close()
	l.InTurn(turn)
	defer l.Done()
	for {
		entries, err := l.Next(ctx)
		if err == nil {
			err = emit(entries)
		}
		if err != nil {
			return err
		}
	}
}

func (a watchAPI) WatchQuery(ctx context.Context, q query.Query, turn httpapi.Turn, emit func([]node.Node, bool) error) error {
	most := maxRows
	if l := q.Limit(); l > 0 && l < most {
		most = l
	}
	r, err := a.m.mirrors.Result(ctx, q.WithLimit(most+1))
	if err != nil {
		return err
	}
	defer r.Close()
	r.InTurn(turn)
	defer r.Done()
	for {
		nodes, err := r.Next(ctx)
		if err == nil {
			err = emit(nodes[:min(len(nodes), most)], len(nodes) > most)
		}
		if err != nil {
			return err
		}
	}
}

type contentAPI struct{ m *Mesh }

// body is a file that also releases its place when it is closed.
type body struct {
	io.ReadSeeker
	io.Closer
}

func (a contentAPI) Open(ctx context.Context, segments []string) (*httpapi.File, error) {
	f, err := ride(ctx, a.m.hubs.Bounds(), alsoLost, func() (*content.File, error) { return a.m.content.Read(ctx, segments) })
	if err != nil {
		return nil, err
	}
	return &httpapi.File{Name: f.Name, Size: f.Size, Modified: f.Modified, ETag: f.ETag, Body: body{f.ReadSeeker, f}}, nil
}

func (a contentAPI) List(ctx context.Context, path node.Path, collection, dir string) ([]httpapi.FileEntry, error) {
	list, err := a.m.content.List(ctx, path, collection, dir)
	if err != nil {
		return nil, err
	}
	out := make([]httpapi.FileEntry, len(list))
	for i, e := range list {
		out[i] = httpapi.FileEntry{Name: e.Name, Dir: e.Dir, Size: e.Size, Modified: e.Modified}
		if !e.Dir {
			out[i].URL = content.URL(path, collection, strings.Trim(dir+"/"+e.Name, "/"))
		}
	}
	return out, nil
}

func (a contentAPI) Write(ctx context.Context, segments []string, body io.Reader, cond httpapi.FileCondition) (httpapi.StoredFile, error) {
	at, collection, file, err := a.m.content.Split(ctx, segments)
	if err != nil {
		return httpapi.StoredFile{}, err
	}
	stored, err := a.m.content.PutIf(ctx, at, collection, file, body, content.Condition(cond))
	return httpapi.StoredFile{URL: content.URL(at, collection, file), Size: stored.Size, ETag: stored.ETag, Created: stored.Created}, err
}

func (a contentAPI) Remove(ctx context.Context, segments []string, cond httpapi.FileCondition) error {
	at, collection, file, err := a.m.content.Split(ctx, segments)
	if err != nil {
		return err
	}
	return a.m.content.DeleteIf(ctx, at, collection, file, content.Condition(cond))
}

type importAPI struct{ m *Mesh }

func (a importAPI) Import(ctx context.Context, r httpapi.ImportRequest) (node.Path, error) {
	if err := a.m.nodes.Require(ctx, "", access.Administer); err != nil {
		return "", err // before anything is told about the server's folders
	}
	c := httpapi.CredentialFrom(ctx)
	if c == nil {
		return a.m.ImportFolder(ctx, r.Source, r.Into, r.Content)
	}
	over, release, err := c.Follow(ctx)
	if err != nil {
		return "", err
	}
	path, err := a.m.ImportFolder(ctx, r.Source, r.Into, r.Content)
	if err != nil {
		release()
		return "", err
	}
	a.m.hubs.Go(func() { a.m.endWith(path, c, over, release) })
	return path, nil
}

// endWith cancels an activity when the credential that it was started with ends before it.
func (m *Mesh) endWith(path node.Path, c httpapi.Credential, over <-chan struct{}, release func()) {
	finished := m.work.Finished(path)
	for finished != nil {
		select {
		case <-finished:
			release()
			return
		case <-over:
		}
		release()
		var err error
		if over, release, err = c.Follow(m.hubs.Context()); err != nil { // else it is good: only its record was looked up anew
			m.work.Cancel(path, "it was cancelled: the token or session that it was started with was revoked, logged out or has expired")
			return
		}
	}
	release()
}

// ImportFolder imports a folder of this machine as an activity and returns its path. into is the path
// below which, "" to take the top-level folders as partitions; contentDir is a folder of files, or "".
func (m *Mesh) ImportFolder(ctx context.Context, dir, into, contentDir string) (node.Path, error) {
	src, err := importer.Folder(dir)
	if err != nil {
		return "", err
	}
	r := importer.Request{Source: src, Name: dir}
	if into != "" {
		if r.Into, err = node.ParsePath(into); err != nil {
			return "", err
		}
	}
	if contentDir != "" {
		if r.Content, err = importer.Folder(contentDir); err != nil {
			return "", err
		}
	}
	return m.importer.Start(ctx, r)
}

type callerAPI struct{ m *Mesh }

func (a callerAPI) Authenticate(r *http.Request) (*message.Identity, httpapi.Credential, error) {
	id, credential, err := a.m.auth.Authenticate(r)
	if credential == nil {
		return id, nil, err // not an interface that holds nil
	}
	return id, credential, err
}

func (a callerAPI) AsKnown(r *http.Request) (*message.Identity, httpapi.Credential, error) {
	id, credential, err := a.m.auth.AsKnown(r)
	if credential == nil {
		return id, nil, err
	}
	return id, credential, err
}

type tokenAPI struct{ m *Mesh }

func (a tokenAPI) ListTokens(ctx context.Context) (any, error) {
	list, err := a.m.auth.Tokens.List(ctx)
	return map[string]any{"tokens": list}, err
}

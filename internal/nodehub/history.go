package nodehub

import (
	"context"
	"errors"
	"slices"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// mostVersions is how many versions are looked at at once for where a life begins.
const mostVersions = 1000

// Versions lists the history of a node that the caller may read, as far as it is his to know: see
// [Service.begin].
func (c *Client) Versions(ctx context.Context, path node.Path, page store.VersionPage) ([]store.VersionInfo, error) {
	if err := c.s.permit(ctx, path, access.Read); err != nil {
		return nil, err
	}
	ctx, cancel := c.s.mesh.Bounds().Context(ctx, budget.StoreRead, "versions of '"+string(path)+"'")
	defer cancel()
	list, err := c.s.store.Versions(ctx, path, page)
	if err != nil {
		return nil, err
	}
	begin, err := c.s.begin(ctx, path)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(v store.VersionInfo) bool { return v.Version < begin }), nil
}

// At returns a node as it was, in a version that is the caller's to know; others are not there.
func (c *Client) At(ctx context.Context, path node.Path, version int64) (node.Node, error) {
	if err := c.s.permit(ctx, path, access.Read); err != nil {
		return node.Node{}, err
	}
	ctx, cancel := c.s.mesh.Bounds().Context(ctx, budget.StoreRead, "version of '"+string(path)+"'")
	defer cancel()
	n, err := c.s.store.At(ctx, path, version)
	if err != nil && !errors.As(err, new(*store.NotFoundError)) {
		return node.Node{}, err
	}
	begin, other := c.s.begin(ctx, path)
	switch {
	case other != nil:
		return node.Node{}, other
	case version < begin || err != nil && begin > 0:
		return node.Node{}, &store.NotFoundError{Path: path, Version: version} // it says nothing of an earlier life
	}
	return n, err
}

// begin is the first version of a path that the caller may know. Who administers it may know all. To others a
// deletion is the end: whatever was denied at the path, or at what lay there, is not there any more to be
// asked, so that an earlier life is told to nobody else. It is asked after what it decides on was read, and
// asks once more for the permission to read: what was written after a denial is not told to who is denied.
func (s *Service) begin(ctx context.Context, path node.Path) (int64, error) {
	subject, e := SubjectOf(ctx), s.access.Evaluator()
	switch e.Check(subject, path.Main(), access.Administer) {
	case access.Granted:
		return 0, nil
	case access.Undetermined:
		return 0, &access.UndeterminedError{Path: path}
	}
	begin := int64(1)
	page := store.VersionPage{Limit: mostVersions}
	for more := true; more; {
		list, err := s.store.Versions(ctx, path, page)
		if err != nil {
			return 0, err
		}
		more = len(list) == page.Limit
		for _, v := range list {
			if page.Before = v.Version; v.Kind == store.Updated {
				continue
			}
			if begin, more = v.Version, false; v.Kind == store.Deleted {
				begin++
			}
			break
		}
	}
	return begin, s.permit(ctx, path, access.Read)
}

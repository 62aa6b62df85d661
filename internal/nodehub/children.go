package nodehub

import (
	"context"
	"strings"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// To find a child that shows, firstLook children are read, and then lookAhead at a time: mostly the first
// one does.
const (
	firstLook = 2
	lookAhead = 50
)

// Children lists the direct children that the caller may read, and the levels through which something
// may be reached that he may read. HasChildren of an entry says whether its own listing, asked for in the
// same way, would show something. The page's limit counts before that filter; next is where the following
// page starts, "" at the end.
func (c *Client) Children(ctx context.Context, path node.Path, page store.Page) (entries []store.Entry, next string, err error) {
	if page.Limit <= 0 {
		page.Limit = 1000
	}
	e := c.s.access.Evaluator()
	if !e.Loaded() {
		return nil, "", &access.UndeterminedError{Path: path}
	}
	ctx, cancel := c.s.mesh.Bounds().Context(ctx, budget.StoreRead, "list '"+string(path)+"'")
	defer cancel()
	all, err := c.s.store.Children(ctx, path, page)
	if err != nil {
		return nil, "", err
	}
	if len(all) >= page.Limit {
		next = all[len(all)-1].Path.ID()
	}
	subject, now := SubjectOf(ctx), c.s.access.Evaluator()
	for _, entry := range all {
		if !listed(entry.Path, page) {
			continue
		}
		// What was allowed before the rows were read and after: what was written after a denial is in them, and
		// what was deleted before its denial was, too.
		if e.Check(subject, entry.Path, access.Read) != access.Granted || now.Check(subject, entry.Path, access.Read) != access.Granted {
			if !now.Reaches(subject, entry.Path) {
				continue
			}
			entry.Node = nil // a level through which something is reached
		}
		if entry.HasChildren, err = c.shows(ctx, now, subject, entry, page.Satellites); err != nil {
			return nil, "", err
		}
		entries = append(entries, entry)
	}
	return entries, next, nil
}

// listed tells whether a listing has a place at all: without satellites, configuration is no content.
func listed(path node.Path, page store.Page) bool {
	return page.Satellites || !strings.HasPrefix(path.ID(), "_")
}

// shows tells whether a listing of an entry would show something, by looking for the first child that
// does. The store says of an entry whether there is something below that is no satellite; without that a
// listing without satellites is empty.
func (c *Client) shows(ctx context.Context, e *access.Evaluator, subject access.Subject, entry store.Entry, satellites bool) (bool, error) {
	if !entry.HasChildren && !satellites {
		return false, nil
	}
	page := store.Page{Limit: firstLook, Satellites: satellites, NoContent: true}
	for {
		below, err := c.s.store.Children(ctx, entry.Path, page)
		if err != nil {
			return false, err
		}
		for _, child := range below {
			if listed(child.Path, page) && (e.Check(subject, child.Path, access.Read) == access.Granted || e.Reaches(subject, child.Path)) {
				return true, nil
			}
		}
		if len(below) < page.Limit {
			return false, nil
		}
		page.After, page.Limit = below[len(below)-1].Path.ID(), lookAhead
	}
}

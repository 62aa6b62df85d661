package nodehub

import (
	"context"
	"strings"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// lookAhead is how many children are read at a time to find one that shows.
const lookAhead = 50

// Children lists the direct children that the caller may read, and the levels through which something
// may be reached that he may read. The page's limit counts before that filter; next is where the
// following page starts, "" at the end.
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
	subject := SubjectOf(ctx)
	for _, entry := range all {
		if !listed(entry.Path, page) {
			continue
		}
		switch {
		case e.Check(subject, entry.Path, access.Read) == access.Granted:
			if entry.HasChildren, err = c.shows(ctx, e, subject, entry, page.Satellites); err != nil {
				return nil, "", err
			}
			entries = append(entries, entry)
		case e.Reaches(subject, entry.Path):
			entries = append(entries, store.Entry{Path: entry.Path, HasChildren: true})
		}
	}
	return entries, next, nil
}

// listed tells whether a listing has a place at all: without satellites, configuration is no content.
func listed(path node.Path, page store.Page) bool {
	return page.Satellites || !strings.HasPrefix(path.ID(), "_")
}

// shows tells whether a listing of an entry that subject may read would show something. A child of such
// an entry is hidden only by an assignment of its own, so without one below there is nothing to look at,
// and with some the search passes over as many children at most, and stops at the first that shows.
func (c *Client) shows(ctx context.Context, e *access.Evaluator, subject access.Subject, entry store.Entry, satellites bool) (bool, error) {
	if !entry.HasChildren || !satellites && !e.Denies(subject, entry.Path) {
		return entry.HasChildren, nil
	}
	page := store.Page{Limit: lookAhead, Satellites: satellites}
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
		page.After = below[len(below)-1].Path.ID()
	}
}

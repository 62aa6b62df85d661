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

	readAhead = 1000 // children that are read at a time where the first page of a listing was not full
)

// Children lists the direct children that the caller may read, without their contents, and the levels through
// which something may be reached that he may read. HasChildren of an entry says whether its own listing, asked for in the
// same way, would show something. The page's limit counts what is listed; next is the last entry's id where more
// would be listed after it, "" at the end. So it tells nothing of what the caller may not read.
func (c *Client) Children(ctx context.Context, path node.Path, page store.Page) (entries []store.Entry, next string, err error) {
	limit := min(page.Limit, store.MaxPage)
	if limit <= 0 {
		limit = 1000
	}
	e := c.s.access.Evaluator()
	if !e.Loaded() {
		return nil, "", &access.UndeterminedError{Path: path}
	}
	subject := SubjectOf(ctx)
	if e.HoldsNothing(subject) {
		return nil, "", nil // nothing is looked at for who may read nothing
	}
	ctx, cancel := c.s.mesh.Bounds().Context(ctx, budget.StoreRead, "list '"+string(path)+"'")
	defer cancel()
	page.Limit, page.NoContent = min(limit+1, store.MaxPage), true
	// Where much is read, also where much is hidden and little is listed, it is in turns of the subjects, as queries are:
	// else many listings at once would all come too late.
	inTurn := false
	defer func() {
		if inTurn {
			c.s.queries.leave(string(subject))
		}
	}()
	for {
		if !inTurn && page.Limit > readAhead+1 {
			if err := c.s.queries.enter(ctx, string(subject)); err != nil {
				return nil, "", err
			}
			inTurn = true
		}
		all, err := c.s.store.Children(ctx, path, page)
		if err != nil {
			return nil, "", err
		}
		now := c.s.access.Evaluator()
		if !now.Loaded() {
			return nil, "", &access.UndeterminedError{Path: path}
		}
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
			if len(entries) == limit {
				return entries, entries[limit-1].Path.ID(), nil
			}
			if entry.HasChildren, err = c.shows(ctx, now, subject, entry, page.Satellites); err != nil {
				return nil, "", err
			}
			entries = append(entries, entry)
		}
		if len(all) < page.Limit {
			return entries, "", nil
		}
		if !inTurn {
			if err := c.s.queries.enter(ctx, string(subject)); err != nil {
				return nil, "", err
			}
			inTurn = true
		}
		page.After, page.Limit = all[len(all)-1].Path.ID(), min(max(limit+1-len(entries), readAhead), store.MaxPage)
	}
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

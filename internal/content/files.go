package content

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// maxEntries bounds a listing.
const maxEntries = 10_000

// Entry is one file or folder of a listing.
type Entry struct {
	Name     string
	Dir      bool
	Size     int64
	Modified time.Time
}

// collection finds a collection of a node for a caller who holds need. A node without it is answered with
// *CollectionError, which is only for who may read the node.
func (s *Service) collection(ctx context.Context, at node.Path, name string, need access.Permission) (nodehub.Collection, error) {
	if err := s.permit.Require(ctx, at, need); err != nil {
		return nodehub.Collection{}, err
	}
	reply, err := s.owners.Collections(ctx, at, name)
	if err != nil {
		return nodehub.Collection{}, err
	}
	if !reply.MayRead {
		return nodehub.Collection{}, &NotFoundError{}
	}
	if len(reply.Collections) == 0 {
		return nodehub.Collection{}, &CollectionError{Node: at, Collection: name}
	}
	return reply.Collections[0], nil
}

// reach checks that the caller holds need where a file of an inherited collection lies: the files of the
// nodes below the collection's owner lie in it under their own paths, and the way through the owner is
// not to lead around what is decided at those nodes. A folder that no node can have is its parent's.
func (s *Service) reach(ctx context.Context, c nodehub.Collection, dir string, need access.Permission) error {
	if !c.IsInherited {
		return nil
	}
	err := s.permit.Require(ctx, below(node.Path(c.Address), dir), need)
	if errors.As(err, new(*store.NotFoundError)) {
		return &NotFoundError{}
	}
	return err
}

// within is the place of a node's files in a collection that an ancestor owns.
func within(at node.Path, c nodehub.Collection, file string) string {
	_, out, _ := choose(at, []nodehub.Collection{{Name: defaultCollection, Address: c.Address}}, []string{defaultCollection}, file)
	return strings.TrimSuffix(out, "/")
}

// Split finds the node that the segments of {node}/{collection}/{file} begin with, and the rest. A node
// that the caller may not read is passed over as if it were not there, so that what is refused and what
// is absent are one answer. It fails with *NameError for what can be no path, whatever there is.
func (s *Service) Split(ctx context.Context, segments []string) (at node.Path, collection, file string, err error) {
	path, err := pathOf(segments)
	if err != nil {
		return "", "", "", badName(strings.Join(segments, "/"), err)
	}
	now := s.mesh.Clock().Now()
	for look := path; !look.IsRoot(); look = at.Parent() {
		_, res, err := s.locate(ctx, look, now)
		if err != nil {
			return "", "", "", err
		}
		at = res.Node
		err = s.permit.Require(ctx, at, access.Read)
		if errors.As(err, new(*store.NotFoundError)) {
			continue
		}
		if err != nil {
			return "", "", "", err
		}
		collection, file, ok := strings.Cut(strings.TrimPrefix(string(path), string(at)+"/"), "/")
		if !ok || path == at {
			break
		}
		return at, collection, file, nil
	}
	return "", "", "", &NotFoundError{}
}

// List lists a folder of a collection. A collection without files lists empty, and so does, for who may not
// Update the node, one that is not published; a missing subfolder is *FolderError. Folders of nodes that the
// caller may not read are left out.
func (s *Service) List(ctx context.Context, at node.Path, name, dir string) ([]Entry, error) {
	c, err := s.collection(ctx, at, name, access.Read)
	none := &FolderError{Collection: name, Dir: dir}
	if err == nil && !c.IsStatic {
		err = s.permit.Require(ctx, at, access.Update)
		if errors.As(err, new(*access.DeniedError)) {
			err = &CollectionError{Node: at, Collection: name} // as the content route has it
		}
	}
	if errors.As(err, new(*CollectionError)) {
		if dir == "" {
			return nil, nil // no collection yet: no files
		}
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	place := within(at, c, dir)
	if err := s.reach(ctx, c, place, access.Read); err != nil {
		if errors.As(err, new(*NotFoundError)) {
			return nil, none // of a node that is not the caller's to know
		}
		return nil, err
	}
	list, there, err := s.listed(c, place)
	if err != nil && !errors.Is(err, errBadName) {
		return nil, none
	}
	if !there {
		if dir == "" {
			return nil, nil
		}
		return nil, none
	}
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		if e.Dir && s.reach(ctx, c, path.Join(place, e.Name), access.Read) != nil {
			continue
		}
		out = append(out, e)
	}
	if err := s.still(ctx, at, c, place); err != nil {
		if errors.As(err, new(*NotFoundError)) {
			return nil, none
		}
		return nil, err
	}
	slices.SortFunc(out, func(a, b Entry) int {
		if a.Dir != b.Dir {
			if a.Dir {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// listed are the entries of a folder of a collection, of all layers, by name; there is false where no
// layer has the folder.
func (s *Service) listed(c nodehub.Collection, place string) (entries map[string]Entry, there bool, err error) {
	spots, err := s.spots(c, place, true)
	if err != nil {
		return nil, false, err // errBadName where a node with a long segment has no files yet
	}
	entries = map[string]Entry{}
	add := func(dir string, ofNodes bool) error {
		f, err := s.root.Open(dir)
		if errors.Is(err, os.ErrNotExist) || err != nil && isNoFile(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		list, err := f.ReadDir(maxEntries)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		there = true
		for _, d := range list {
			info, err := d.Info()
			_, nearer := entries[d.Name()]
			switch {
			case err != nil, nearer, len(entries) >= maxEntries, strings.HasPrefix(d.Name(), tempPrefix):
			case ofNodes && strings.HasPrefix(d.Name(), layerDir):
			case d.IsDir():
				entries[d.Name()] = Entry{Name: d.Name(), Dir: true, Modified: info.ModTime().UTC()}
			case d.Type().IsRegular():
				entries[d.Name()] = Entry{Name: d.Name(), Size: info.Size(), Modified: info.ModTime().UTC()}
			}
		}
		return nil
	}
	for _, dir := range spots {
		if err := add(dir, false); err != nil {
			return nil, false, err
		}
	}
	if c.IsInherited { // folders that are nodes, or hold some
		tree, err := passedTree(c)
		if err == nil {
			err = add(path.Join(tree, nodeDir(node.Path(strings.Trim(place, "/")))), true)
		}
		if err != nil {
			return nil, false, err
		}
	}
	return entries, there, nil
}

// Delete removes a file, from every layer that has one of its path; see [Service.DeleteIf].
func (s *Service) Delete(ctx context.Context, at node.Path, name, file string) error {
	return s.DeleteIf(ctx, at, name, file, Condition{})
}

// DeleteIf removes a file, from every layer that has one of its path, if the condition holds (*ConditionError).
// The caller needs Update on the node.
func (s *Service) DeleteIf(ctx context.Context, at node.Path, name, file string, when Condition) error {
	c, err := s.collection(ctx, at, name, access.Update)
	if err != nil {
		return err
	}
	if !c.IsEditable {
		return &ReadOnlyError{Collection: name}
	}
	place := within(at, c, file)
	if err := s.reach(ctx, c, folderOf(place), access.Update); err != nil {
		return err
	}
	spots := func() ([]string, error) {
		list, err := s.spots(c, place, false)
		if errors.Is(err, errBadName) {
			err = &NotFoundError{}
		}
		return list, err
	}
	return s.whenMet(when, spots, s.turns.take, func() error {
		list, err := spots()
		if err != nil {
			return err
		}
		// The nearest one last: what is seen does not change before it is gone.
		err = &NotFoundError{}
		for _, p := range slices.Backward(list) {
			if info, statErr := s.root.Stat(p); statErr != nil || !info.Mode().IsRegular() {
				continue
			}
			if err = s.root.Remove(p); err != nil {
				return err
			}
			s.index.replaced(p)
		}
		return err
	})
}

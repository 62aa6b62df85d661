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
	at := node.Path(c.Address)
	for seg := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		next, err := at.Join(seg)
		if err != nil {
			break
		}
		at = next
	}
	err := s.permit.Require(ctx, at, need)
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

// List lists a folder of a collection. A collection without files lists empty; a missing subfolder is
// *FolderError. Folders of nodes that the caller may not read are left out.
func (s *Service) List(ctx context.Context, at node.Path, name, dir string) ([]Entry, error) {
	c, err := s.collection(ctx, at, name, access.Read)
	none := &FolderError{Collection: name, Dir: dir}
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
	p, err := diskPath(node.Path(c.Address), c.Name, c.BasePath, place)
	if err != nil {
		return nil, none
	}
	f, err := s.root.Open(p)
	if errors.Is(err, os.ErrNotExist) && dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, none
	}
	defer f.Close()
	list, err := f.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, none
	}
	out := make([]Entry, 0, len(list))
	for _, d := range list {
		info, err := d.Info()
		if err != nil || strings.HasPrefix(d.Name(), tempPrefix) || !(d.IsDir() || d.Type().IsRegular()) {
			continue
		}
		if d.IsDir() && s.reach(ctx, c, path.Join(place, d.Name()), access.Read) != nil {
			continue
		}
		e := Entry{Name: d.Name(), Dir: d.IsDir(), Modified: info.ModTime().UTC()}
		if !e.Dir {
			e.Size = info.Size()
		}
		out = append(out, e)
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

// Delete removes a file. The caller needs Update on the node.
func (s *Service) Delete(ctx context.Context, at node.Path, name, file string) error {
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
	p, err := diskPath(node.Path(c.Address), c.Name, c.BasePath, place)
	if err != nil {
		return &NotFoundError{}
	}
	info, err := s.root.Stat(p)
	if err != nil || !info.Mode().IsRegular() {
		return &NotFoundError{}
	}
	return s.root.Remove(p)
}

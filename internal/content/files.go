package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// tempPrefix begins the names of files that are being written.
const tempPrefix = "~upload-"

// Put stores a file: written beside its place, flushed to disk, then renamed, so that a reader sees the
// old file or the new one. The collection "content" of a node is made by its first upload. The caller
// needs Update on the node.
func (s *Service) Put(ctx context.Context, at node.Path, name, file string, body io.Reader) (created bool, size int64, err error) {
	c, err := s.collection(ctx, at, name, access.Update)
	if errors.As(err, new(*CollectionError)) && name == defaultCollection {
		if err = s.owners.EnsureCollection(ctx, at, nodehub.Collection{Name: name, SourceType: "folder", IsStatic: true, IsEditable: true}); err == nil {
			c, err = s.collection(ctx, at, name, access.Update)
		}
		var still *CollectionError
		if errors.As(err, &still) {
			still.Broken = true // there is a node in its place, which was not made here
		}
	}
	if err != nil {
		return false, 0, err
	}
	if !c.IsEditable {
		return false, 0, &ReadOnlyError{Collection: name}
	}
	place := within(at, c, file)
	if err := s.reach(ctx, c, folderOf(place), access.Update); err != nil {
		return false, 0, err
	}
	p, err := diskPath(node.Path(c.Address), c.Name, c.BasePath, place)
	if err != nil || lastSegment(file) == "" || strings.HasPrefix(lastSegment(file), tempPrefix) {
		return false, 0, badName(file, err)
	}
	created, size, err = s.store(p, body)
	if err == nil {
		s.index.submit(p)
	}
	return created, size, err
}

// store writes one file durably.
func (s *Service) store(p string, body io.Reader) (created bool, size int64, err error) {
	if info, err := s.root.Stat(p); err == nil && info.IsDir() {
		return false, 0, &InTheWayError{Name: path.Base(p), Dir: true} // before the bytes are taken
	}
	if err := s.root.MkdirAll(path.Dir(p), 0o750); err != nil {
		return false, 0, placeError(p, false, err)
	}
	tmp := path.Join(path.Dir(p), tempPrefix+fmt.Sprintf("%x", time.Now().UnixNano())+"-"+path.Base(p))
	f, err := s.root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return false, 0, placeError(p, false, err)
	}
	defer func() {
		if err != nil {
			_ = s.root.Remove(tmp) // the error that is returned matters more
		}
	}()
	size, err = io.Copy(f, io.LimitReader(body, s.most+1))
	if err == nil && size > s.most {
		err = &TooLargeError{Limit: s.most}
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return false, 0, diskError(err)
	}
	_, statErr := s.root.Stat(p)
	if err = s.root.Rename(tmp, p); err != nil {
		return false, 0, placeError(p, true, err)
	}
	return errors.Is(statErr, os.ErrNotExist), size, nil
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

// CopyIn copies a folder into a collection's place, for the importer: files that have the same size and
// time are left alone. It returns how many were copied and how many were there already.
func (s *Service) CopyIn(ctx context.Context, owner node.Path, name string, src fs.FS, skip func(file string, err error)) (copied, same int, err error) {
	err = fs.WalkDir(src, ".", func(file string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err != nil && file == ".":
			return err
		case err != nil: // a folder that can not be read fails alone
			skip(file, err)
			return nil
		case d.IsDir():
			return nil
		}
		if !d.Type().IsRegular() {
			skip(file, errors.New("not a regular file"))
			return nil
		}
		done, err := s.copyOne(owner, name, src, file)
		switch {
		case errors.As(err, new(*FullError)):
			return err
		case err != nil:
			skip(file, err)
		case done:
			copied++
		default:
			same++
		}
		return nil
	})
	return copied, same, err
}

func (s *Service) copyOne(owner node.Path, name string, src fs.FS, file string) (copied bool, err error) {
	p, err := diskPath(owner, name, "", file)
	if err != nil {
		return false, badName(file, err)
	}
	f, err := src.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if have, err := s.root.Stat(p); err == nil && have.Size() == info.Size() && !have.ModTime().Before(info.ModTime()) {
		return false, nil
	}
	_, _, err = s.store(p, f)
	return err == nil, err
}

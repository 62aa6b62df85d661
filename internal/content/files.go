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
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
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

// ReadOnlyError refuses a write to a collection that takes none.
type ReadOnlyError struct{ Collection string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("collection '%s' takes no uploads", e.Collection)
}

// TooLargeError refuses a file.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string { return fmt.Sprintf("a file may have %d bytes", e.Limit) }

// FullError says that the disk is full: nothing was stored.
type FullError struct{ Err error }

func (e *FullError) Error() string {
	return "the disk is full; free space and upload again, nothing was stored"
}
func (e *FullError) Unwrap() error { return e.Err }

// NameError refuses a file name.
type NameError struct{ Name string }

func (e *NameError) Error() string { return fmt.Sprintf("'%s' is not a file name", e.Name) }

// collection finds a collection of a node for a caller who holds need.
func (s *Service) collection(ctx context.Context, at node.Path, name string, need access.Permission) (nodehub.Collection, error) {
	if err := s.permit.Require(ctx, at, need); err != nil {
		return nodehub.Collection{}, err
	}
	reply, err := s.owners.Collections(ctx, at, name)
	if err != nil {
		return nodehub.Collection{}, err
	}
	if len(reply.Collections) == 0 || !reply.MayRead {
		return nodehub.Collection{}, &NotFoundError{}
	}
	return reply.Collections[0], nil
}

// within is the place of a node's files in a collection that an ancestor owns.
func within(at node.Path, c nodehub.Collection, file string) string {
	_, out, _ := choose(at, []nodehub.Collection{{Name: defaultCollection, Address: c.Address}}, []string{defaultCollection}, file)
	return strings.TrimSuffix(out, "/")
}

// Split finds the node that the segments of {node}/{collection}/{file} begin with, and the rest.
func (s *Service) Split(ctx context.Context, segments []string) (at node.Path, collection, file string, err error) {
	path, err := pathOf(segments)
	if err != nil {
		return "", "", "", &NotFoundError{}
	}
	_, res, err := s.locate(ctx, path, s.mesh.Clock().Now())
	if err != nil {
		return "", "", "", err
	}
	collection, file, ok := strings.Cut(res.Rest, "/")
	if !ok {
		return "", "", "", &NotFoundError{}
	}
	return res.Node, strings.ReplaceAll(collection, "~", "/"), file, nil
}

// List lists a folder of a collection. A collection without files lists empty; a missing subfolder is
// *NotFoundError.
func (s *Service) List(ctx context.Context, at node.Path, name, dir string) ([]Entry, error) {
	c, err := s.collection(ctx, at, name, access.Read)
	var none *NotFoundError
	if errors.As(err, &none) && dir == "" {
		return nil, nil // no collection yet: no files
	}
	if err != nil {
		return nil, err
	}
	p, err := diskPath(node.Path(c.Address), c.Name, c.BasePath, within(at, c, dir))
	if err != nil {
		return nil, &NotFoundError{}
	}
	f, err := s.root.Open(p)
	if errors.Is(err, os.ErrNotExist) && dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, &NotFoundError{}
	}
	defer f.Close()
	list, err := f.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &NotFoundError{}
	}
	out := make([]Entry, 0, len(list))
	for _, d := range list {
		info, err := d.Info()
		if err != nil || strings.HasPrefix(d.Name(), tempPrefix) || !(d.IsDir() || d.Type().IsRegular()) {
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
	if errors.As(err, new(*NotFoundError)) && name == defaultCollection {
		if err = s.owners.EnsureCollection(ctx, at, nodehub.Collection{Name: name, SourceType: "folder", IsStatic: true, IsEditable: true}); err == nil {
			c, err = s.collection(ctx, at, name, access.Update)
		}
	}
	if err != nil {
		return false, 0, err
	}
	if !c.IsEditable {
		return false, 0, &ReadOnlyError{Collection: name}
	}
	p, err := diskPath(node.Path(c.Address), c.Name, c.BasePath, within(at, c, file))
	if err != nil || lastSegment(file) == "" || strings.HasPrefix(lastSegment(file), tempPrefix) {
		return false, 0, &NameError{Name: file}
	}
	created, size, err = s.store(p, body)
	if err == nil {
		s.index.submit(p)
	}
	return created, size, err
}

// store writes one file durably.
func (s *Service) store(p string, body io.Reader) (created bool, size int64, err error) {
	if err := s.root.MkdirAll(path.Dir(p), 0o750); err != nil {
		return false, 0, diskError(err)
	}
	tmp := path.Join(path.Dir(p), tempPrefix+fmt.Sprintf("%x", time.Now().UnixNano())+"-"+path.Base(p))
	f, err := s.root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return false, 0, diskError(err)
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
		return false, 0, diskError(err)
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
	p, err := diskPath(node.Path(c.Address), c.Name, c.BasePath, within(at, c, file))
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
		return false, &NameError{Name: file}
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

// diskError names a full disk.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &FullError{Err: err}
	}
	return err
}

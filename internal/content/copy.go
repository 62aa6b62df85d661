package content

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// CopyIn copies a folder into a folder of a collection, "" for its root, for the importer: files that
// have the same size and time are left alone, and so are those with the same bytes. It returns how many
// were copied and how many were there already. A collection that takes no uploads takes no copies either
// (*ReadOnlyError). Like an upload, each file asks for permission and collection once its bytes are there; where these
// are taken away on the way, copying ends (*WithdrawnError). A file below a node where the caller may not write fails alone.
func (s *Service) CopyIn(ctx context.Context, owner node.Path, name, dir string, src fs.FS, skip func(file string, err error)) (copied, same int, err error) {
	in := s.trash.begin(store.Deleted, owner)
	defer s.trash.done(in)
	c, err := s.collection(ctx, owner, name, access.Update)
	if err != nil {
		return 0, 0, err
	}
	if !c.IsEditable {
		return 0, 0, &ReadOnlyError{Collection: name}
	}
	var over error // what ends the copying, and not one file
	lands := func(on *flight, place string) (target, error) {
		c, err := s.collection(ctx, owner, name, access.Update)
		if err == nil && !c.IsEditable {
			err = &ReadOnlyError{Collection: name}
		}
		if err != nil {
			over = err
			if !errors.As(err, new(*ReadOnlyError)) && ctx.Err() == nil {
				over = &WithdrawnError{Node: owner, Collection: name, Err: err}
			}
			return target{}, over
		}
		return s.uploadTo(ctx, on, c, owner, place)
	}
	changed := folders{}
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
		if err := addressable(owner, name, path.Join(dir, file)); err != nil {
			skip(file, err)
			return nil
		}
		if !d.Type().IsRegular() {
			skip(file, errors.New("not a regular file"))
			return nil
		}
		if err := s.permit.Require(ctx, owner, access.Update); err != nil { // before a file is compared, too
			return &WithdrawnError{Node: owner, Collection: name, Err: err}
		}
		at := path.Join(dir, file)
		if err := s.reach(ctx, c, folderOf(within(owner, c, at)), access.Update); err != nil {
			skip(file, err)
			return nil
		}
		done, err := s.copyOne(ctx, in, c, within(owner, c, at), src, file, changed, func(on *flight) (target, error) { return lands(on, at) })
		switch {
		case over != nil:
			return over
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
	return copied, same, errors.Join(err, diskError(s.flush(changed)))
}

// addressable refuses a file whose address could not be asked for: it would be listed, and served to nobody.
func addressable(owner node.Path, name, file string) error {
	if _, err := node.ParsePath(string(owner) + "/" + name + "/" + file); err != nil {
		return badName(strings.ToValidUTF8(path.Base(file), "?"), err)
	}
	return nil
}

func (s *Service) copyOne(ctx context.Context, on *flight, c nodehub.Collection, place string, src fs.FS, file string, changed folders, again func(*flight) (target, error)) (copied bool, err error) {
	if c.IsInherited {
		on = s.trash.follow(on, node.Path(c.Address+"/"+place)) // it is of the nodes on the way to it
		defer s.trash.done(on)
	}
	to, err := s.target(ctx, c, place)
	if err != nil {
		return false, err
	}
	p := s.visible(to.spots)
	f, err := src.Open(file)
	if err != nil {
		return false, err
	}
	defer func() { f.Close() }() // the last one that was opened
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if have, err := s.root.Stat(p); p != "" && err == nil && have.Size() == info.Size() {
		if have.ModTime().Equal(info.ModTime()) {
			return false, nil
		}
		same, err := s.sameBytes(p, f)
		if err != nil {
			return false, err
		}
		if same { // the next import need not read it
			return false, s.root.Chtimes(p, time.Time{}, info.ModTime())
		}
		if err := f.Close(); err != nil {
			return false, err
		}
		if f, err = src.Open(file); err != nil {
			return false, err
		}
	}
	_, err = s.store(on, to, f, info.ModTime(), changed, Condition{}, func() (target, error) { return again(on) })
	return err == nil, err
}

// sameBytes compares a stored file with what is read from r.
func (s *Service) sameBytes(p string, r io.Reader) (bool, error) {
	f, err := s.root.Open(p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var a, b [64 << 10]byte
	for {
		n, err := io.ReadFull(r, a[:])
		m, have := io.ReadFull(f, b[:])
		if !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		for _, e := range []error{err, have} {
			if e != nil && !errors.Is(e, io.EOF) && !errors.Is(e, io.ErrUnexpectedEOF) {
				return false, e
			}
		}
		if err != nil {
			return have != nil, nil
		}
	}
}

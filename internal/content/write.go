package content

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// tempPrefix begins the names of unfinished uploads of earlier versions, which lay beside their places.
// They are not shown, and no file may have such a name.
const tempPrefix = "~upload-"

// Stored is what an upload did.
type Stored struct {
	Created bool
	Size    int64
	ETag    string // as reads give it; "" for a file that has none

	home string // where it lies
}

// Put stores a file, whatever is there; see [Service.PutIf].
func (s *Service) Put(ctx context.Context, at node.Path, name, file string, body io.Reader) (created bool, size int64, err error) {
	stored, err := s.PutIf(ctx, at, name, file, body, Condition{})
	return stored.Created, stored.Size, err
}

// PutIf stores a file: written elsewhere, flushed to disk, then renamed, so that a reader sees the old file
// or the new one, and what is answered is durable. The collection "content" of a node is made by its first
// upload, unless it has files already: their configuration was deleted, and it is not for an upload to
// publish them again (*UnpublishedError). The caller needs Update on the node. An upload that the deletion
// of its node overtakes is refused. So is one whose condition does not hold (*ConditionError): before the body is
// read, or at the moment at which the file would come to its place. Permission and configuration are asked for
// at both moments, too: a body may take long, and who may begin it may not be who may end it.
func (s *Service) PutIf(ctx context.Context, at node.Path, name, file string, body io.Reader, when Condition) (stored Stored, err error) {
	flight := s.trash.begin(store.Deleted, at)
	defer s.trash.done(flight)
	c, err := s.collection(ctx, at, name, access.Update)
	if errors.As(err, new(*CollectionError)) && name == defaultCollection {
		if when.wantsFile() {
			return Stored{}, when.holds(false, "", time.Time{}) // no collection is made for that
		}
		c, err = s.first(ctx, at)
	}
	if err != nil {
		return Stored{}, err
	}
	to, err := s.uploadTo(ctx, flight, c, at, file)
	if err != nil {
		return Stored{}, err
	}
	again := func() (target, error) {
		c, err := s.collection(ctx, at, name, access.Update)
		if kind, ok := message.TypeOf(err); ok && kind == message.NotFound {
			err = &NotFoundError{} // the node has gone
		}
		var none *CollectionError
		if errors.As(err, &none) && !none.Broken && name == defaultCollection {
			err = &UnpublishedError{Node: at, Collection: name} // it was there when the upload began
		}
		if err != nil {
			return target{}, err
		}
		return s.uploadTo(ctx, flight, c, at, file)
	}
	changed := folders{}
	stored, err = s.store(flight, to, body, time.Time{}, changed, when, again)
	if err == nil {
		err = diskError(s.flush(changed))
	}
	if err == nil {
		s.index.submit(stored.home)
	}
	return stored, err
}

// uploadTo is where a file that is uploaded to a collection comes to, for a caller who may write there.
func (s *Service) uploadTo(ctx context.Context, on *flight, c nodehub.Collection, at node.Path, file string) (target, error) {
	if !c.IsEditable {
		return target{}, &ReadOnlyError{Collection: c.Name}
	}
	place := within(at, c, file)
	if c.IsInherited {
		s.trash.also(on, node.Path(c.Address+"/"+place)) // it is of the nodes on the way to it
	}
	if err := s.reach(ctx, c, folderOf(place), access.Update); err != nil {
		return target{}, err
	}
	if lastSegment(file) == "" || strings.HasPrefix(lastSegment(file), tempPrefix) {
		return target{}, badName(file, nil)
	}
	return s.target(ctx, c, place)
}

// first makes the default collection of a node that has none, for its first upload.
func (s *Service) first(ctx context.Context, at node.Path) (nodehub.Collection, error) {
	dir, err := collectionDir(at, defaultCollection)
	if err != nil {
		return nodehub.Collection{}, err
	}
	files, err := s.holdsFiles(dir)
	if err != nil {
		return nodehub.Collection{}, err
	}
	if !files {
		err := s.owners.EnsureCollection(ctx, at, nodehub.Collection{Name: defaultCollection, SourceType: "folder", IsStatic: true, IsEditable: true})
		if err != nil {
			return nodehub.Collection{}, err
		}
	}
	// With files there may be one by now: of another first upload.
	c, err := s.collection(ctx, at, defaultCollection, access.Update)
	var none *CollectionError
	if !errors.As(err, &none) {
		return c, err
	}
	config := at + "/" + nodehub.CollectionSegment + "/" + defaultCollection
	if res, err := s.resolver.Resolve(ctx, config); err == nil && res.Node != config {
		return c, &UnpublishedError{Node: at, Collection: defaultCollection}
	}
	none.Broken = true // there is a node in its place, which was not made here
	return c, none
}

// target is a path inside a collection that a file comes to.
type target struct {
	c      nodehub.Collection
	inside string
	home   string   // where the file will lie
	spots  []string // where files of the path may lie now
}

func (s *Service) target(ctx context.Context, c nodehub.Collection, inside string) (to target, err error) {
	to = target{c: c, inside: inside}
	if to.home, err = s.home(ctx, c, inside); err == nil {
		to.spots, err = s.spots(c, inside, false)
		if errors.Is(err, errBadName) {
			err = nil // it is the first file of a node whose path has a long segment
		}
	}
	if errors.Is(err, errBadName) {
		err = badName(badSegment(inside), nil)
	}
	return to, err
}

// badSegment is the first segment of a path that can not be a name, or else the last one.
func badSegment(inside string) string {
	for _, seg := range segmentsOf(inside) {
		if checkName(seg) != nil {
			return seg
		}
	}
	return lastSegment(inside)
}

// folders are those whose entries have changed and are not known to be durable.
type folders map[string]bool

// seenAt are where the file of the target may lie at this moment: its own place among them.
func (s *Service) seenAt(to target) ([]string, error) {
	spots, err := s.spots(to.c, to.inside, false)
	if errors.Is(err, errBadName) {
		err = nil // none yet, but for its own place
	}
	return append(spots, to.home), err
}

// store writes one file. A time that is not zero becomes the file's. The file itself is durable
// afterwards, its name once the folders in changed are flushed. Where again is set, it is asked once the bytes are
// there, whether and to where the file may come to its place.
func (s *Service) store(on *flight, to target, body io.Reader, modified time.Time, changed folders, when Condition, again func() (target, error)) (stored Stored, err error) {
	if err := s.inTheWay(to.c, to.inside, to.spots); err != nil { // before the bytes are taken
		return Stored{}, err
	}
	spots := func() ([]string, error) { return s.seenAt(to) }
	asIs := func(change func() error) error { return change() }
	if err := s.whenMet(when, spots, asIs, func() error { return nil }); err != nil {
		return Stored{}, err
	}
	tmp := path.Join(uploadsDir, rand.Text())
	f, err := s.root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return Stored{}, diskError(err)
	}
	defer func() {
		if err != nil {
			_ = s.root.Remove(tmp) // the error that is returned matters more
		}
	}()
	sum := sha256.New()
	stored.Size, err = io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, s.most+1))
	if err == nil && stored.Size > s.most {
		err = &TooLargeError{Limit: s.most}
	}
	if err == nil && !modified.IsZero() {
		err = s.root.Chtimes(tmp, time.Time{}, modified)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Stored{}, diskError(err)
	}
	if stored.Size < BufferLimit {
		stored.ETag = entityTag(sum)
	}
	if again != nil {
		if to, err = again(); err != nil {
			return Stored{}, err
		}
	}
	p := to.home
	land := func(move func() error) error {
		return s.turns.take(func() error { return s.trash.land(on, p, move) })
	}
	err = s.whenMet(when, spots, land, func() error {
		if err := s.makeDir(path.Dir(p), changed); err != nil {
			return placeError(p, false, err)
		}
		was := s.visible(append(slices.Clip(to.spots), p))
		if err := s.root.Rename(tmp, p); err != nil {
			return placeError(p, true, err)
		}
		stored.Created = was == ""
		changed[path.Dir(p)] = true
		s.index.replaced(p)
		return nil
	})
	if err != nil {
		return Stored{}, err
	}
	stored.home = p
	return stored, nil
}

// wayTo fails where a file stands on the way to a folder, which need not be there.
func (s *Service) wayTo(dir string) error {
	for ; dir != "."; dir = path.Dir(dir) {
		info, err := s.root.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return fs.ErrExist
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// makeDir makes a folder and those above it, and notes where entries were made.
func (s *Service) makeDir(dir string, changed folders) error {
	if info, err := s.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if above := path.Dir(dir); above != "." {
		if err := s.makeDir(above, changed); err != nil {
			return err
		}
	}
	err := s.root.Mkdir(dir, 0o750)
	if err == nil {
		changed[path.Dir(dir)] = true
	}
	return err
}

// flush makes the entries of folders durable. A folder that is gone by now needs it no more.
func (s *Service) flush(changed folders) error {
	if runtime.GOOS == "windows" {
		return nil // it has no flush of folders, and logs its renames
	}
	for dir := range changed {
		f, err := s.root.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// CopyIn copies a folder into a folder of a collection, "" for its root, for the importer: files that
// have the same size and time are left alone, and so are those with the same bytes. It returns how many
// were copied and how many were there already. A collection that takes no uploads takes no copies either
// (*ReadOnlyError).
func (s *Service) CopyIn(ctx context.Context, owner node.Path, name, dir string, src fs.FS, skip func(file string, err error)) (copied, same int, err error) {
	flight := s.trash.begin(store.Deleted, owner)
	defer s.trash.done(flight)
	c, err := s.collection(ctx, owner, name, access.Update)
	if err != nil {
		return 0, 0, err
	}
	if !c.IsEditable {
		return 0, 0, &ReadOnlyError{Collection: name}
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
		done, err := s.copyOne(ctx, flight, c, within(owner, c, path.Join(dir, file)), src, file, changed)
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
	return copied, same, errors.Join(err, diskError(s.flush(changed)))
}

// addressable refuses a file whose address could not be asked for: it would be listed, and served to nobody.
func addressable(owner node.Path, name, file string) error {
	if _, err := node.ParsePath(string(owner) + "/" + name + "/" + file); err != nil {
		return badName(strings.ToValidUTF8(path.Base(file), "?"), err)
	}
	return nil
}

func (s *Service) copyOne(ctx context.Context, on *flight, c nodehub.Collection, place string, src fs.FS, file string, changed folders) (copied bool, err error) {
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
	_, err = s.store(on, to, f, info.ModTime(), changed, Condition{}, nil)
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

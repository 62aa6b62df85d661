package content

import (
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

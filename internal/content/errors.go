package content

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// ReadOnlyError refuses a write to a collection that takes none.
type ReadOnlyError struct{ Collection string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("collection '%s' takes no uploads", e.Collection)
}

// TakesNoUploads tells this refusal from others, to those who do not know this package.
func (*ReadOnlyError) TakesNoUploads() {}

// WithdrawnError ends the copying of files into a collection: who copies may not write there any more, or the collection is
// not what it was.
type WithdrawnError struct {
	Node       node.Path
	Collection string
	Err        error
}

func (e *WithdrawnError) Error() string {
	return fmt.Sprintf("the right to write the files of '%s', or their collection '%s', was taken away while they were copied (%v); those that were copied stay, and no more are", e.Node, e.Collection, e.Err)
}
func (e *WithdrawnError) Unwrap() error { return e.Err }

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
type NameError struct{ Name, Reason string }

func (e *NameError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("%q is not a file name", e.Name)
	}
	return fmt.Sprintf("%q is not a file name: %s", e.Name, e.Reason)
}

// badName refuses a name for the reason in err, which may be nil.
// A name is that of a folder where it is long and stands before the last segment: a node may have it.
func badName(name string, err error) *NameError {
	var path *node.PathError
	if errors.As(err, &path) {
		return &NameError{Name: name, Reason: path.Reason}
	}
	return &NameError{Name: name, Reason: fmt.Sprintf("a segment has 1 to %d bytes, no '/', backslash or NUL, and does not begin with '%s'", maxSegment, tempPrefix)}
}

// CollectionError says that a node has no such collection.
type CollectionError struct {
	Node       node.Path
	Collection string
	Broken     bool // its configuration is there and says nothing that can be used
}

func (e *CollectionError) Error() string {
	if e.Broken {
		return fmt.Sprintf("'%s/%s/%s' configures no collection: its type is not %s, or its content is none; mend it or delete it, then upload again",
			e.Node, nodehub.CollectionSegment, e.Collection, nodehub.TypeCollection)
	}
	return fmt.Sprintf("'%s' has no collection '%s'", e.Node, e.Collection)
}

// UnpublishedError refuses an upload to a node whose files are there and whose collection is not: its
// configuration was deleted, and an upload does not publish them again.
type UnpublishedError struct {
	Node       node.Path
	Collection string
}

func (e *UnpublishedError) Error() string {
	return fmt.Sprintf("'%s' has files in its collection '%s', which is not configured any more; an upload does not publish them again: create '%s/%s/%s', then upload again",
		e.Node, e.Collection, e.Node, nodehub.CollectionSegment, e.Collection)
}

// FolderError says that a collection has no such folder.
type FolderError struct{ Collection, Dir string }

func (e *FolderError) Error() string {
	return fmt.Sprintf("the collection '%s' has no folder '%s'", e.Collection, e.Dir)
}

// InTheWayError says what stands where a file should be stored.
type InTheWayError struct {
	Name string // of the file that is to be stored
	Dir  bool   // a folder has its name; else a file has the name of one of its folders
}

func (e *InTheWayError) Error() string {
	if e.Dir {
		return fmt.Sprintf("'%s' is a folder: a file does not replace it", e.Name)
	}
	return fmt.Sprintf("'%s' would lie below a file: a file holds no others", e.Name)
}

// placeError says what is wrong with the place of a file, as far as it is that; dir says that something in
// the way can only be a folder.
func placeError(p string, dir bool, err error) error {
	switch {
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return &InTheWayError{Name: path.Base(p), Dir: dir}
	case isNoFile(err):
		return badName(path.Base(p), nil)
	}
	return diskError(err)
}

// diskError names a full disk.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &FullError{Err: err}
	}
	return err
}

package importer

import (
	"io/fs"
	"os"
	"path"
	"sync"
)

// folder is a folder of this machine. Links do not leave it. It keeps the directory that was opened
// last, because an import reads a directory's files one after the other and opening each from the top
// costs more than reading it.
type folder struct {
	fs.FS
	root *os.Root

	mu  sync.Mutex
	dir string
	at  *os.Root // of dir; nil: none yet
}

func newFolder(root *os.Root) *folder { return &folder{FS: root.FS(), root: root} }

// Open implements fs.FS. Whatever the short way refuses is decided from the top.
func (f *folder) Open(name string) (fs.File, error) {
	dir := path.Dir(name)
	if !fs.ValidPath(name) || dir == "." {
		return f.FS.Open(name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil || f.dir != dir {
		at, err := f.root.OpenRoot(dir)
		if err != nil {
			return f.FS.Open(name)
		}
		if f.at != nil {
			_ = f.at.Close() // of reading only: nothing is lost
		}
		f.at, f.dir = at, dir
	}
	file, err := f.at.Open(path.Base(name))
	if err != nil {
		return f.FS.Open(name)
	}
	return file, nil
}

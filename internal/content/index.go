package content

import (
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"
)

// BufferLimit is the size from which a file is streamed without an entity tag, in bytes (edge.md §1.3).
const BufferLimit = 10_000_000

const (
	indexWorkers = 4      // uploads that are indexed at once (edge.md B-2)
	indexedFiles = 65_536 // entity tags that are kept
)

// indexer computes the entity tags of files, of uploads in the background and of others on first read.
// It is safe for concurrent use.
type indexer struct {
	root *os.Root
	wg   sync.WaitGroup
	slot chan struct{}

	mu     sync.Mutex
	closed bool
	tags   map[string]tag

	// indexing, when set, is called at the beginning of each indexing; for tests.
	indexing func(name string)
	indexed  func(name string)
}

type tag struct {
	of    fs.FileInfo // another process may have put another file there, of the same size and time
	value string
}

func newIndexer(root *os.Root) *indexer {
	return &indexer{root: root, slot: make(chan struct{}, indexWorkers), tags: map[string]tag{}}
}

// submit indexes a file off the caller's path. The caller's own budget is not spent on it; a file that
// cannot be read now is indexed when it is.
func (x *indexer) submit(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	x.wg.Go(func() {
		x.slot <- struct{}{}
		defer func() { <-x.slot }()
		if x.indexing != nil {
			x.indexing(name)
		}
		x.run(name)
		if x.indexed != nil {
			x.indexed(name)
		}
	})
}

func (x *indexer) run(name string) {
	f, err := x.root.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < BufferLimit {
		_, _ = x.etag(name, info, f) // computed again at the next read when it fails
	}
}

// etag is the strong entity tag of an open file: the SHA-256 of its bytes. The file's position is at
// its start afterwards.
func (x *indexer) etag(name string, info fs.FileInfo, f io.ReadSeeker) (string, error) {
	x.mu.Lock()
	known, ok := x.tags[name]
	x.mu.Unlock()
	if ok && os.SameFile(known.of, info) && known.of.Size() == info.Size() && known.of.ModTime().Equal(info.ModTime()) {
		return known.value, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	value := entityTag(sum)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tags) >= indexedFiles {
		for k := range x.tags {
			delete(x.tags, k)
			break
		}
	}
	x.tags[name] = tag{info, value}
	return value, nil
}

// entityTag is the tag of bytes that were summed up.
func entityTag(sum hash.Hash) string {
	return `"` + base64.StdEncoding.EncodeToString(sum.Sum(nil)) + `"`
}

// replaced forgets the entity tag of a file whose bytes are others now, of whatever size and time.
func (x *indexer) replaced(name string) {
	x.mu.Lock()
	delete(x.tags, name)
	x.mu.Unlock()
}

func (x *indexer) close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.wg.Wait()
}

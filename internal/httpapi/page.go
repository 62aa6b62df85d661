package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// page is the built page: its files, read once.
type page struct {
	files map[string]asset
	icon  asset // for whoever asks for it before, or without, the page that names it
}

// asset is one file that never changes while the program runs.
type asset struct {
	name string
	tag  string
	text []byte
}

func newAsset(name string, text []byte) asset {
	sum := sha256.Sum256(text)
	return asset{name: name, tag: `"` + hex.EncodeToString(sum[:]) + `"`, text: text}
}

func (a asset) serve(w http.ResponseWriter, r *http.Request, cache string) {
	h := w.Header()
	h.Set("Content-Type", mediaType(a.name))
	h.Set("Cache-Control", cache)
	h.Set("ETag", a.tag)
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.text))
}

// Names that the page answers itself.
const (
	robots  = "robots.txt"
	favicon = "favicon.ico"
	index   = "index.html"
)

const (
	// cacheForever is for names that change with their bytes (CR-1).
	cacheForever = "public, max-age=2592000, immutable"
	cacheAsk     = "no-cache"
)

func loadPage(files fs.FS, icon asset) (*page, error) {
	p := &page{files: map[string]asset{}, icon: icon}
	if files == nil {
		return p, nil
	}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		p.files[name] = newAsset(name, text)
		if base := path.Base(name); strings.HasPrefix(base, "favicon") && path.Ext(base) == ".svg" {
			p.icon = p.files[name]
		}
		return nil
	})
	return p, err
}

// hashed is the folder of the page whose files carry a hash of their bytes in their name. No partition
// begins with "_", so it hides no node.
const hashed = "_app/"

// servePage answers every path that is no route: a file of the page, or the page itself, which finds out
// what the path means.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	switch name { // what is asked for at every host, and is no node
	case robots:
		newAsset(name, []byte("User-agent: *\nDisallow: /\n")).serve(w, r, cacheAsk)
		return nil
	case favicon:
		s.page.icon.serve(w, r, cacheAsk)
		return nil
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	if file, ok := s.page.files[name]; ok && name != index {
		cache := cacheAsk
		if strings.HasPrefix(name, hashed) {
			cache = cacheForever
		}
		file.serve(w, r, cache)
		return nil
	}
	start, ok := s.page.files[index]
	if !ok {
		return problem("not_found", "this process serves no page")
	}
	if strings.HasPrefix(name, hashed) {
		return problem("not_found", "the page has no such file") // of another build
	}
	start.serve(w, r, cacheAsk)
	return nil
}

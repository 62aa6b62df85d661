package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/hubmesh/hubmesh/internal/budget"
)

const filesPrefix = "/api/files/"

// defaultCollection is the collection that a node's files are in unless a name says otherwise.
const defaultCollection = "content"

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, filesPrefix)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	collection, dir := q.Get("collection"), q.Get("dir")
	if collection == "" {
		collection = defaultCollection
	}
	for name, text := range map[string]string{"collection": collection, "dir": dir} {
		if !relative(text) {
			return problem("bad_request", name+" is a path without empty segments, '.', '..' and backslashes").with("field", name)
		}
	}
	entries, err := s.Files.List(r.Context(), path, collection, dir)
	if err != nil {
		if told(err) {
			return err
		}
		return missing(path, err)
	}
	if entries == nil {
		entries = []FileEntry{}
	}
	return s.writeJSON(w, r, http.StatusOK, map[string]any{"collection": collection, "dir": dir, "entries": entries})
}

// relative tells whether text is a path that stays below where it begins; nothing is the beginning.
func relative(text string) bool {
	if text == "" {
		return true
	}
	escaped := make([]string, 0, 4)
	for part := range strings.SplitSeq(text, "/") {
		escaped = append(escaped, url.PathEscape(part))
	}
	_, err := segments(&http.Request{URL: &url.URL{Path: text, RawPath: strings.Join(escaped, "/")}}, "")
	return err == nil
}

// told tells whether an error names what is missing, such as a folder, to a caller who may read the node.
func told(err error) bool {
	p := problemOf(err)
	return p.Code == "not_found" && len(p.Members) > 0
}

// missingFile makes the answer to a change of a file that is not there, or not the caller's to know of,
// say nothing of the node that was found nearest to it.
func missingFile(err error) error {
	if p := problemOf(err); p.Code == "not_found" && !told(err) {
		return problem("not_found", "there is no such node or file, or it is not yours to read")
	}
	return err
}

// fileSegments reads {node}/{collection}/{file}.
func fileSegments(r *http.Request) ([]string, error) {
	parts, err := segments(r, filesPrefix)
	if err != nil {
		return nil, err
	}
	if len(parts) < 3 {
		return nil, problem("not_found", "a file is at {node}/{collection}/{file}")
	}
	return parts, nil
}

func (s *Server) putFile(w http.ResponseWriter, r *http.Request) error {
	parts, err := fileSegments(r)
	if err != nil {
		return err
	}
	cond, err := fileCondition(r)
	if err == nil {
		err = part(r)
	}
	if err == nil {
		err = plain(r)
	}
	if err != nil {
		return err
	}
	if r.ContentLength > s.limits.UploadBytes {
		return &http.MaxBytesError{Limit: s.limits.UploadBytes}
	}
	reader := &patient{Reader: http.MaxBytesReader(w, r.Body, s.limits.UploadBytes), w: w, wait: s.bounds.Own(budget.ContentIO)}
	stored, err := s.Files.Write(r.Context(), parts, reader, cond)
	reader.done()
	if err != nil {
		s.awaitBody(w, r) // what is left of it: it was refused before it had come
		return missingFile(unmetFile(cond, err))
	}
	answer := map[string]any{"url": stored.URL, "size": stored.Size}
	if stored.ETag != "" {
		w.Header().Set("ETag", stored.ETag)
		answer["etag"] = stored.ETag
	}
	status := http.StatusOK
	if stored.Created {
		status = http.StatusCreated
		w.Header().Set("Location", stored.URL)
	}
	return s.writeJSON(w, r, status, answer)
}

func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request) error {
	parts, err := fileSegments(r)
	if err != nil {
		return err
	}
	cond, err := fileCondition(r)
	if err != nil {
		return err
	}
	if err := s.Files.Remove(r.Context(), parts, cond); err != nil {
		return missingFile(unmetFile(cond, err))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hubmesh/hubmesh/internal/node"
)

const nodesPrefix = "/api/nodes/"

func (s *Server) getNode(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, nodesPrefix)
	if err != nil {
		return err
	}
	n, err := s.Nodes.Get(r.Context(), path)
	if err != nil {
		return missing(path, err)
	}
	if current(r, n.Version) {
		w.Header().Set("ETag", etag(n.Version))
		w.Header().Set("Cache-Control", "private, no-cache")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.writeNode(w, r, http.StatusOK, n)
}

// missing makes the answer for what is not there speak of the path that was asked for, whatever the
// reason and wherever it was found missing.
func missing(path node.Path, err error) error {
	if p := problemOf(err); p.Code == "not_found" {
		return absent(path)
	}
	return err
}

func (s *Server) writeNode(w http.ResponseWriter, r *http.Request, status int, n node.Node) error {
	w.Header().Set("ETag", etag(n.Version))
	return s.writeText(w, r, status, n.AppendJSON(nil))
}

func (s *Server) createNode(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, nodesPrefix)
	if err != nil {
		return err
	}
	text, err := s.body(w, r, mediaJSON)
	if err != nil {
		return err
	}
	n, err := s.readNode(text, path)
	if err != nil {
		return err
	}
	created, err := s.Nodes.Create(r.Context(), n)
	if err != nil {
		return missing(path, err)
	}
	w.Header().Set("Location", nodesPrefix+encodePath(created.Path))
	return s.writeNode(w, r, http.StatusCreated, created)
}

// outcome is one line of the answer to a create of many.
type outcome struct {
	Path    string   `json:"path,omitempty"`
	Version int64    `json:"version,omitempty"`
	Error   *Problem `json:"error,omitempty"`
}

// createNodes reads each node by itself: one that can not be read fails alone.
// mostNodes bounds the nodes of one list.
const mostNodes = 10_000

// someNodes is a list of nodes that are not decoded yet. One that is too long is refused before there is room for it.
type someNodes []json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (l *someNodes) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		if begin == nil && err == nil { // null
			return nil
		}
		return problem("bad_request", "nodes is a list")
	}
	*l = someNodes{}
	for d.More() {
		if len(*l) == mostNodes {
			return problem("bad_request", fmt.Sprintf("at most %d nodes at once", mostNodes)).with("field", "nodes")
		}
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// aroundOutcome is about what one outcome of many takes in the answer, in bytes.
const aroundOutcome = 400

func (s *Server) createNodes(w http.ResponseWriter, r *http.Request) error {
	var list struct {
		Nodes someNodes `json:"nodes"`
	}
	if err := s.decode(w, r, &list); err != nil {
		return err
	}
	if list.Nodes == nil {
		return problem("bad_request", "nodes is the list of the nodes to create").with("field", "nodes")
	}
	if err := s.hold(w, r, int64(len(list.Nodes))*aroundOutcome); err != nil {
		return err
	}
	results := make([]outcome, len(list.Nodes))
	var nodes []node.Node
	var places []int // of nodes in results
	for i, text := range list.Nodes {
		if i%256 == 0 && r.Context().Err() != nil {
			return r.Context().Err() // nobody waits for it
		}
		n, unknown, err := node.Decode(text, s.limits.Node)
		if err == nil {
			err = unknownMember(unknown)
		}
		if err == nil && n.Path == "" {
			err = &node.FieldError{Field: "path", Reason: "it is needed here"}
		}
		results[i].Path = short(string(n.Path))
		if err != nil {
			results[i].Error = problemOf(err)
			continue
		}
		nodes, places = append(nodes, written(n)), append(places, i)
	}
	if len(nodes) > 0 {
		outcomes, err := s.Bulk.CreateMany(r.Context(), nodes)
		if err != nil {
			return err
		}
		if len(outcomes) != len(nodes) {
			return fmt.Errorf("%d outcomes for %d nodes", len(outcomes), len(nodes))
		}
		for i, o := range outcomes {
			at := &results[places[i]]
			if o.Err != nil {
				at.Error = problemOf(missing(nodes[i].Path, o.Err))
				if at.Error.Code == "internal" {
					s.log.Error("a node of many was not created", "path", nodes[i].Path, "error", o.Err)
				}
				continue
			}
			at.Version = o.Version
		}
	}
	return s.writeJSON(w, r, http.StatusOK, map[string]any{"results": results})
}

func (s *Server) putNode(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, nodesPrefix)
	if err != nil {
		return err
	}
	cond, err := condition(r)
	if err == nil {
		err = part(r)
	}
	if err != nil {
		return err
	}
	text, err := s.body(w, r, mediaJSON)
	if err != nil {
		return err
	}
	n, err := s.readNode(text, path)
	if err != nil {
		return err
	}
	got, created, err := s.Nodes.Put(r.Context(), n, cond)
	if err != nil {
		return missing(path, unmet(cond, err))
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", nodesPrefix+encodePath(got.Path))
	}
	return s.writeNode(w, r, status, got)
}

func (s *Server) patchNode(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, nodesPrefix)
	if err != nil {
		return err
	}
	cond, err := condition(r)
	if err != nil {
		return err
	}
	text, err := s.body(w, r, mediaPatch, mediaJSON)
	if err != nil {
		return err
	}
	// The owner applies the patch; here it is only read, so that what is no patch is refused before a
	// hub is started for it.
	if _, err := node.ApplyPatch(node.Node{Path: path, MainNode: path.Main()}, text, s.limits.Node); err != nil {
		return invalidPatch(err)
	}
	got, err := s.Nodes.Patch(r.Context(), path, text, cond)
	if err != nil {
		return missing(path, unmet(cond, invalidPatch(err)))
	}
	return s.writeNode(w, r, http.StatusOK, got)
}

// invalidPatch names the fault of a field as one of the patch.
func invalidPatch(err error) error {
	var field *node.FieldError
	if errors.As(err, &field) {
		return problem("invalid_patch", field.Error()).with("field", field.Field)
	}
	return err
}

func (s *Server) deleteNode(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, nodesPrefix)
	if err != nil {
		return err
	}
	cond, err := condition(r)
	if err != nil {
		return err
	}
	recursive, err := boolean(r.URL.Query(), "recursive")
	if err != nil {
		return err
	}
	deletion, err := s.Nodes.Delete(r.Context(), path, recursive, cond)
	if err != nil {
		return missing(path, unmet(cond, err))
	}
	return s.writeJSON(w, r, http.StatusOK, deletion)
}

// boolean reads a boolean of the query: present without a value is true.
func boolean(query url.Values, name string) (bool, error) {
	if !query.Has(name) {
		return false, nil
	}
	value := query.Get(name)
	if value == "" {
		return true, nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, problem("bad_request", fmt.Sprintf("%s is true or false", name)).with("field", name)
	}
	return on, nil
}

// number reads a whole number of the query, 0 when it is not there.
func number(query url.Values, name string, most int64) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || most > 0 && n > most {
		detail := fmt.Sprintf("%s is a whole number above 0", name)
		if most > 0 {
			detail += fmt.Sprintf(", at most %d", most)
		}
		return 0, problem("bad_request", detail).with("field", name)
	}
	return n, nil
}

package httpapi

import (
	"net/http"
	"net/url"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// child is one line of a listing of children.
type child struct {
	Path        node.Path `json:"path"`
	ID          string    `json:"id"`
	Name        string    `json:"name,omitempty"`
	NodeType    string    `json:"nodeType,omitempty"`
	Icon        string    `json:"icon,omitempty"`
	Order       *int      `json:"order,omitempty"`
	Version     int64     `json:"version"`
	HasChildren bool      `json:"hasChildren"`
}

// childrenOf translates a listing; it is never null.
func childrenOf(entries []store.Entry) []child {
	list := make([]child, len(entries))
	for i, e := range entries {
		list[i] = child{Path: e.Path, ID: e.Path.ID(), HasChildren: e.HasChildren}
		if n := e.Node; n != nil {
			list[i].Name, list[i].NodeType, list[i].Icon = n.Name, n.NodeType, n.Icon
			list[i].Order, list[i].Version = n.Order, n.Version
		}
	}
	return list
}

// The bounds of the store's listings (store.Page, store.VersionPage).
const (
	mostChildren = 10_000
	mostVersions = 1_000
)

func (s *Server) listChildren(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePathOrRoot(r, "/api/children/")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	limit, err := number(q, "limit", mostChildren)
	if err != nil {
		return err
	}
	satellites, err := boolean(q, "satellites")
	if err != nil {
		return err
	}
	entries, next, err := s.Tree.Children(r.Context(), path, store.Page{After: q.Get("after"), Limit: int(limit), Satellites: satellites})
	if err != nil {
		return missing(path, err)
	}
	return s.writeJSON(w, r, http.StatusOK, map[string]any{"children": childrenOf(entries), "next": next})
}

// versionLine is one line of a history.
type versionLine struct {
	store.VersionInfo
	Kind string `json:"kind"`
}

func (s *Server) listVersions(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, "/api/versions/")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	at, err := number(q, "at", 0)
	if err != nil {
		return err
	}
	if q.Has("at") {
		if at < 1 {
			return problem("bad_request", "at is a version; the first one is 1").with("field", "at")
		}
		n, err := s.Tree.At(r.Context(), path, at)
		if err != nil {
			return missing(path, err)
		}
		return s.writeNode(w, r, http.StatusOK, n)
	}
	before, err := number(q, "before", 0)
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", mostVersions)
	if err != nil {
		return err
	}
	list, err := s.Tree.Versions(r.Context(), path, store.VersionPage{Before: before, Limit: int(limit)})
	if err != nil {
		return missing(path, err)
	}
	if len(list) == 0 && before == 0 {
		return absent(path) // history outlives its node, so there never was one
	}
	lines := make([]versionLine, len(list))
	for i, v := range list {
		lines[i] = versionLine{VersionInfo: v, Kind: kindName(v.Kind)}
	}
	return s.writeJSON(w, r, http.StatusOK, map[string]any{"versions": lines})
}

func kindName(k store.ChangeKind) string {
	switch k {
	case store.Created:
		return "created"
	case store.Updated:
		return "updated"
	case store.Deleted:
		return "deleted"
	}
	return "unknown"
}

func (s *Server) runQuery(w http.ResponseWriter, r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // else a query that can not be read would be told as none
		return problem("invalid_query", "the query string of the URL is not well formed: "+err.Error())
	}
	q, err := query.Parse(values.Get("q"))
	if err != nil {
		return err
	}
	nodes, truncated, err := s.Tree.Query(r.Context(), q)
	if err != nil {
		return err
	}
	if err := s.hold(w, r, heldBy(nodes)); err != nil {
		return err
	}
	writeResult(w, nodes, truncated)
	return nil
}

// aroundNode is about what a node takes beside its content, in bytes.
const aroundNode = 512

func heldBy(nodes []node.Node) (bytes int64) {
	for _, n := range nodes {
		bytes += int64(n.Content.Len()) + aroundNode
	}
	return bytes
}

// writeResult answers with a query's result, chunk by chunk: the text of all nodes is never there at once.
func writeResult(w http.ResponseWriter, nodes []node.Node, truncated bool) {
	begin(w, http.StatusOK)
	text := append(make([]byte, 0, 2*chunkBytes), `{"nodes":[`...)
	for i := range nodes {
		if i > 0 {
			text = append(text, ',')
		}
		text = nodes[i].AppendJSON(text)
		nodes[i] = node.Node{}
		if len(text) >= chunkBytes {
			if !inChunks(w, text) {
				return
			}
			text = text[:0]
		}
	}
	inChunks(w, append(resultEnd(text, truncated), '\n'))
}

// resultText appends a query's result as JSON: nodes know their own text, so nothing is marshalled twice.
// Begin is what stands at the start of the object.
func resultText(begin []byte, nodes []node.Node, truncated bool) []byte {
	text := append(begin, `"nodes":[`...)
	for i, n := range nodes {
		if i > 0 {
			text = append(text, ',')
		}
		text = n.AppendJSON(text)
	}
	return resultEnd(text, truncated)
}

func resultEnd(text []byte, truncated bool) []byte {
	text = append(text, `],"truncated":`...)
	if truncated {
		return append(text, `true}`...)
	}
	return append(text, `false}`...)
}

const renderPrefix = "/api/render/"

func (s *Server) renderNode(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, renderPrefix)
	if err != nil {
		return err
	}
	html, version, err := s.Renderer.Render(r.Context(), path)
	if err != nil {
		return missing(path, err)
	}
	return s.writeJSON(w, r, http.StatusOK, map[string]any{"path": path, "version": version, "html": html})
}

func (s *Server) renderText(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, renderPrefix)
	if err != nil {
		return err
	}
	// A preview is of a node that the caller may read; nothing is read or rendered for whoever may not.
	if _, err := s.Nodes.Get(r.Context(), path); err != nil {
		return missing(path, err)
	}
	var text struct {
		Markdown string `json:"markdown"`
	}
	if err := s.decode(w, r, &text); err != nil {
		return err
	}
	html, err := s.Renderer.RenderText(r.Context(), path, text.Markdown)
	if err != nil {
		return missing(path, err)
	}
	return s.writeJSON(w, r, http.StatusOK, map[string]any{"html": html})
}

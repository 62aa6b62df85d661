package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

const (
	mediaJSON  = "application/json"
	mediaPatch = "application/merge-patch+json"
)

// plain refuses a body that is encoded: it would be stored, and given back, as if it were not (RFC 9110 §8.4).
func plain(r *http.Request) error {
	if coding := strings.TrimSpace(r.Header.Get("Content-Encoding")); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem("unsupported_media_type", fmt.Sprintf("the body is encoded as %q; send it as it is, without Content-Encoding", coding))
	}
	return nil
}

// vouched is a body that counts only as long as the credential that it was sent with: what is read after that has
// ended fails, the end of the body too. So nothing is done for a request whose token was revoked while its body
// was on its way (edge.md AC-R1).
type vouched struct {
	io.ReadCloser
	over <-chan struct{}
}

func (v *vouched) Read(b []byte) (int, error) {
	n, err := v.ReadCloser.Read(b)
	if closedBy(v.over) {
		return 0, credentialOver
	}
	return n, err
}

// wantMedia refuses a body of another media type. A body without one is taken for the first.
func wantMedia(r *http.Request, allowed ...string) error {
	if err := plain(r); err != nil {
		return err
	}
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err == nil {
		charset := strings.ToLower(params["charset"])
		for _, a := range allowed {
			if media == a && (charset == "" || charset == "utf-8") {
				return nil
			}
		}
	}
	return problem("unsupported_media_type", fmt.Sprintf("the body is %q; this route takes %s in UTF-8", header, strings.Join(allowed, " or ")))
}

// body reads the whole body within the limit on bodies. A declared length above it is refused before a
// byte is read, and an undeclared one while it is read.
func (s *Server) body(w http.ResponseWriter, r *http.Request, media ...string) ([]byte, error) {
	if err := wantMedia(r, media...); err != nil {
		return nil, err
	}
	limit := s.limits.BodyBytes
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	var text []byte
	if err := s.whole(w, func() (err error) {
		text, err = s.arriving(w, r, http.MaxBytesReader(w, r.Body, limit))
		return err
	}); err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, problem("invalid_json", "there is no body").with("offset", 0)
	}
	if len(text) >= chunkBytes {
		if err := s.hold(w, r, copies*int64(len(text))); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// copies is how often a body is there, beside itself, while its JSON is checked and decoded; small ones do not count.
const copies = 4

// arriving reads a body to its end. What has come is held, not what was announced: an announcement costs its sender
// nothing.
func (s *Server) arriving(w http.ResponseWriter, r *http.Request, body io.Reader) ([]byte, error) {
	text := make([]byte, 0, min(max(r.ContentLength+1, 512), chunkBytes))
	for held := 0; ; {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if more := len(text) - held; more >= chunkBytes || err != nil && more > 0 {
			if err := s.hold(w, r, int64(more)); err != nil {
				return nil, err
			}
			held = len(text)
		}
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}

// A body may nest deeper than the content of one node, so that one too deep of many fails alone.
const (
	aroundContent = 3    // levels around the content of a node in a list of nodes: the body, the list, the node
	bodyDepth     = 1000 // levels that every body may have
)

// decode reads a JSON body into v, strictly: depth and size are checked without recursion first, then
// members that v does not have are refused.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, v any) error {
	text, err := s.body(w, r, mediaJSON)
	if err != nil {
		return err
	}
	limits := node.Limits{NodeBytes: int(s.limits.BodyBytes), Depth: max(bodyDepth, s.limits.Node.Depth+aroundContent), NameBytes: s.limits.Node.NameBytes}
	if _, err := node.ParseContent(text, limits); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if said := (*Problem)(nil); errors.As(err, &said) {
			return said
		}
		return problem("bad_request", strings.TrimPrefix(node.Shape(err).Error(), "json: "))
	}
	return nil
}

// readNode reads a node for path. What contradicts the path is refused.
func (s *Server) readNode(text []byte, path node.Path) (node.Node, error) {
	n, unknown, err := node.Decode(text, s.limits.Node)
	if err == nil {
		err = unknownMember(unknown)
	}
	if err != nil {
		return node.Node{}, err
	}
	if n.Path != path {
		if err := agrees(text, path); err != nil {
			return node.Node{}, err
		}
		if n.MainNode == n.Path.Main() {
			n.MainNode = path.Main()
		}
		n.Path = path
	}
	return written(n), nil
}

// unknownMember refuses the first member that nodes do not have: a mistyped "contnet" would otherwise empty
// the content. "$type" says only that the object is a node.
func unknownMember(names []string) error {
	for _, name := range names {
		if name != "$type" {
			return &node.FieldError{Field: name, Reason: "nodes have no such field", Unknown: true}
		}
	}
	return nil
}

// written keeps what a caller may write: a request never names its own author, version or time
// (edge.md §2.3).
func written(n node.Node) node.Node {
	n.Version, n.CreatedBy, n.ModifiedBy = 0, "", ""
	n.CreatedAt, n.ModifiedAt = time.Time{}, time.Time{}
	return n
}

// agrees checks what a body says of the path, each member by itself.
func agrees(text []byte, path node.Path) error {
	var said struct{ Path, ID, Namespace *string }
	if err := json.Unmarshal(text, &said); err != nil {
		return problem("invalid_json", err.Error())
	}
	for _, member := range []struct {
		name   string
		said   *string
		actual string
	}{{"path", said.Path, string(path)}, {"id", said.ID, path.ID()}, {"namespace", said.Namespace, string(path.Namespace())}} {
		if member.said != nil && strings.Trim(*member.said, "/") != member.actual {
			return &node.FieldError{Field: member.name, Reason: "it contradicts the path in the URL"}
		}
	}
	return nil
}

// writeJSON answers with v.
func (s *Server) writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) error {
	text, err := marshal(v)
	if err != nil {
		return fmt.Errorf("marshalling the answer: %w", err)
	}
	return s.writeText(w, r, status, text)
}

// marshal is json.Marshal without what is only needed within HTML: "<" would be six bytes.
func marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// writeText answers with JSON text, which is held until it is sent.
func (s *Server) writeText(w http.ResponseWriter, r *http.Request, status int, text []byte) error {
	if err := s.holdAnswer(w, r, int64(len(text))); err != nil {
		return err
	}
	begin(w, status)
	inChunks(w, append(text, '\n'))
	return nil
}

// begin starts an answer of JSON text.
func begin(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", mediaJSON)
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "private, no-cache")
	}
	w.WriteHeader(status)
}

package httpapi

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
)

// segments splits what stands after prefix in the escaped path of a request and decodes each segment
// exactly once (CR-3). Refused are empty segments, ".", "..", and in a decoded segment "/", a backslash,
// NUL, or what is not UTF-8. Nothing after the prefix is no segments.
func segments(r *http.Request, prefix string) ([]string, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok {
		return nil, problem("invalid_path", "the route itself is percent-encoded")
	}
	if rest == "" {
		return nil, nil
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		switch {
		case err != nil:
			return nil, problem("invalid_path", "a segment is not percent-encoded properly")
		case decoded == "":
			return nil, problem("invalid_path", "a segment is empty")
		case decoded == "." || decoded == "..":
			return nil, problem("invalid_path", "'.' and '..' are not segments")
		case strings.ContainsAny(decoded, "/\\\x00"):
			return nil, problem("invalid_path", "a segment holds '/', '\\' or NUL")
		case !utf8.ValidString(decoded):
			return nil, problem("invalid_path", "a segment is not UTF-8")
		}
		parts[i] = decoded
	}
	return parts, nil
}

// nodePath reads the node path after prefix.
func nodePath(r *http.Request, prefix string) (node.Path, error) {
	parts, err := segments(r, prefix)
	if err != nil {
		return "", err
	}
	return node.ParsePath(strings.Join(parts, "/"))
}

// nodePathOrRoot is like nodePath; nothing after the prefix is the root scope.
func nodePathOrRoot(r *http.Request, prefix string) (node.Path, error) {
	parts, err := segments(r, prefix)
	if err != nil || len(parts) == 0 {
		return "", err
	}
	return node.ParsePath(strings.Join(parts, "/"))
}

// encodePath escapes a node path for a URL.
func encodePath(p node.Path) string {
	var b strings.Builder
	for segment := range p.Segments() {
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(url.PathEscape(segment))
	}
	return b.String()
}

// canonical tells whether the mux would take the path as it is. It answers others with a redirect to the
// cleaned path, and a caller that sends dots must be refused instead.
func canonical(escaped string) bool {
	if escaped == "" || escaped[0] != '/' {
		return false
	}
	cleaned := path.Clean(escaped)
	if cleaned != "/" && strings.HasSuffix(escaped, "/") {
		cleaned += "/"
	}
	return cleaned == escaped
}

package httpapi

import (
	"net/http"
	"strings"
)

// param is a parameter of the query or a header.
type param struct{ name, in, kind, help string }

// answer is one good answer of an operation.
type answer struct {
	status int
	schema string // name in schemas.go, "" for no body
	media  string // "" is JSON
	help   string
}

// operation is one row of the table of routes.
type operation struct {
	method  string
	path    string // as in docs/api.md; a segment {path}, {node} … may be several
	id      string // operationId
	tag     string
	summary string
	params  []param
	body    string // schema of the request's body, "" for none
	bodies  []string
	answers []answer
	codes   []string // of errors, beside those of every route

	open     bool // serves everybody without asking who
	degrades bool // a credential that is not good makes the caller Anonymous
	admin    bool // for an Admin of the root scope
	asKnown  bool // an Admin is answered while nobody can be determined, by what was known last: it tells what goes on, and of no node
	needs    func(*Services) bool
	handle   func(*Server, http.ResponseWriter, *http.Request) error
}

// pattern is the mux pattern: everything from the first parameter on is one wildcard, as handlers read
// the escaped path themselves.
func (op *operation) pattern() string {
	before, _, wild := strings.Cut(op.path, "{")
	if !wild {
		if before == "/" {
			return "/{$}"
		}
		return before
	}
	return before + "{rest...}"
}

var (
	ifMatch     = param{"If-Match", "header", "string", "the version that must be stored, quoted"}
	ifNoneMatch = param{"If-None-Match", "header", "string", "versions that the caller has; `*` on PUT refuses to replace"}

	fileMatch     = param{"If-Match", "header", "string", "ETags of which the file must have one, or `*`: it must be there"}
	fileNoneMatch = param{"If-None-Match", "header", "string", "ETags of which the file must have none, or `*`: it must not be there"}
	fileSince     = param{"If-Unmodified-Since", "header", "string", "the file must not have changed since; only without If-Match"}

	limitParam = param{"limit", "query", "integer", "at most so many"}
	resumeFrom = param{"Last-Event-ID", "header", "string", "the id of the last event that the caller has: a version, or one with a dot and the stamp of its row"}

	nodeAnswer = answer{http.StatusOK, "Node", "", "the node; its version is the ETag"}
	pathCodes  = []string{"invalid_path", "not_found"}
	readCodes  = []string{"invalid_path", "not_found", "lapsed", "starting", "undetermined"}
	writeCodes = []string{"bad_request", "invalid_path", "invalid_json", "unauthenticated", "forbidden", "not_found", "partition_missing", "too_large",
		"unsupported_media_type", "invalid_content", "lapsed", "overloaded", "storage_full", "undetermined"}
)

func more(codes []string, further ...string) []string {
	return append(append([]string{}, codes...), further...)
}

// operations is the table of routes. The mux, the OpenAPI document and the comparison with docs/api.md
// are made from it.
var operations = []operation{
	{method: "GET", path: "/api/nodes/{path}", id: "getNode", tag: "nodes", summary: "One node",
		params: []param{ifNoneMatch}, answers: []answer{nodeAnswer, {http.StatusNotModified, "", "", "the caller has this version"}},
		codes: readCodes, needs: hasNodes, handle: (*Server).getNode},
	{method: "POST", path: "/api/nodes/{path}", id: "createNode", tag: "nodes", summary: "Create a node", body: "Node",
		answers: []answer{{http.StatusCreated, "Node", "", "the node; `Location` is its URL"}}, codes: more(writeCodes, "exists"), needs: hasNodes, handle: (*Server).createNode},
	{method: "POST", path: "/api/nodes", id: "createNodes", tag: "nodes", summary: "Create many nodes, each with its own outcome", body: "NodeList",
		answers: []answer{{http.StatusOK, "Outcomes", "", "an outcome a node, in order"}}, codes: writeCodes,
		needs: func(s *Services) bool { return s.Bulk != nil }, handle: (*Server).createNodes},
	{method: "PUT", path: "/api/nodes/{path}", id: "putNode", tag: "nodes", summary: "Create a node, or replace its writable fields", body: "Node",
		params:  []param{ifMatch, ifNoneMatch},
		answers: []answer{nodeAnswer, {http.StatusCreated, "Node", "", "the new node"}}, codes: more(writeCodes, "conflict", "stale"), needs: hasNodes, handle: (*Server).putNode},
	{method: "PATCH", path: "/api/nodes/{path}", id: "patchNode", tag: "nodes", summary: "Merge a patch over the writable fields", body: "NodePatch",
		bodies: []string{mediaPatch, mediaJSON}, params: []param{ifMatch},
		answers: []answer{nodeAnswer}, codes: more(writeCodes, "invalid_patch", "conflict", "stale"), needs: hasNodes, handle: (*Server).patchNode},
	{method: "DELETE", path: "/api/nodes/{path}", id: "deleteNode", tag: "nodes", summary: "Delete a node, or with recursive its subtree",
		params:  []param{{"recursive", "query", "boolean", "take the subtree"}, ifMatch},
		answers: []answer{{http.StatusOK, "Deleted", "", "how many, and the version of the tombstone"}},
		codes:   more(readCodes, "forbidden", "has_children", "conflict", "stale", "overloaded", "storage_full"), needs: hasNodes, handle: (*Server).deleteNode},
	{method: "GET", path: "/api/children/{path}", id: "listChildren", tag: "nodes", summary: "Direct children; without a path the spaces",
		params:  []param{{"after", "query", "string", "children after this id"}, limitParam, {"satellites", "query", "boolean", "satellites too"}},
		answers: []answer{{http.StatusOK, "Children", "", "one page"}}, codes: more(readCodes, "bad_request"), needs: hasTree, handle: (*Server).listChildren},
	{method: "GET", path: "/api/versions/{path}", id: "listVersions", tag: "nodes", summary: "History, newest first; with at the node as it was",
		params:  []param{{"at", "query", "integer", "answer the node at this version"}, {"before", "query", "integer", "versions below"}, limitParam},
		answers: []answer{{http.StatusOK, "VersionsOrNode", "", "one page, or the node"}}, codes: more(readCodes, "bad_request"), needs: hasTree, handle: (*Server).listVersions},
	{method: "GET", path: "/api/query", id: "query", tag: "nodes", summary: "Nodes that match",
		params:  []param{{"q", "query", "string", "the query"}},
		answers: []answer{{http.StatusOK, "QueryResult", "", "the nodes"}}, codes: []string{"invalid_query", "lapsed", "undetermined"}, needs: hasTree, handle: (*Server).runQuery},
	{method: "GET", path: "/api/render/{path}", id: "renderNode", tag: "nodes", summary: "The node's document as sanitised HTML",
		answers: []answer{{http.StatusOK, "Rendered", "", "the HTML"}}, codes: more(readCodes, "too_large", "overloaded"), needs: hasRenderer, handle: (*Server).renderNode},
	{method: "POST", path: "/api/render/{path}", id: "renderText", tag: "nodes", summary: "Markdown as the node's document would be rendered", body: "Markdown",
		answers: []answer{{http.StatusOK, "HTML", "", "the HTML"}}, codes: more(readCodes, "invalid_json", "too_large", "unsupported_media_type", "overloaded"), needs: hasRenderer, handle: (*Server).renderText},

	{method: "GET", path: "/api/watch/{path}", id: "watchNode", tag: "live", summary: "One node, live",
		params:  []param{resumeFrom},
		answers: []answer{{http.StatusOK, "", mediaEvents, "events full, patch, deleted, end"}}, codes: more(readCodes, "overloaded"), needs: hasWatcher, handle: (*Server).watchNode},
	{method: "GET", path: "/api/live", id: "live", tag: "live", summary: "Several subscriptions on one connection",
		params:  []param{{"node", "query", "array", "paths of nodes"}, {"children", "query", "array", "paths whose children"}, {"query", "query", "array", "queries"}},
		answers: []answer{{http.StatusOK, "", mediaEvents, "events full, patch, deleted, children, result, sub-end, end, each with sub"}},
		codes:   []string{"bad_request", "invalid_path", "invalid_query", "overloaded"}, needs: hasWatcher, handle: (*Server).live},

	{method: "GET", path: contentPrefix + "{node}/{collection}/{file}", id: "getContent", tag: "files", summary: "A file of a published collection",
		params:  []param{{"download", "query", "boolean", "as an attachment"}, {"Range", "header", "string", "bytes"}},
		answers: []answer{{http.StatusOK, "", "*/*", "the bytes"}, {http.StatusPartialContent, "", "*/*", "a part of them"}, {http.StatusNotModified, "", "", "the caller has these bytes"}},
		codes:   []string{"not_found", "range_not_satisfiable", "lapsed", "starting", "unavailable"}, degrades: true,
		needs: func(s *Services) bool { return s.Content != nil }, handle: (*Server).getContent},
	{method: "GET", path: "/api/files/{node}", id: "listFiles", tag: "files", summary: "The files of a collection",
		params:  []param{{"collection", "query", "string", "its name; content by default"}, {"dir", "query", "string", "a folder in it"}},
		answers: []answer{{http.StatusOK, "FileList", "", "the entries"}}, codes: readCodes, needs: hasFiles, handle: (*Server).listFiles},
	{method: "PUT", path: "/api/files/{node}/{collection}/{file}", id: "putFile", tag: "files", summary: "Upload a file: the raw bytes",
		bodies: []string{"*/*"}, body: "Bytes", params: []param{fileMatch, fileNoneMatch, fileSince},
		answers: []answer{{http.StatusOK, "FileWritten", "", "replaced; its ETag"}, {http.StatusCreated, "FileWritten", "", "new; its ETag"}},
		codes:   more(readCodes, "bad_request", "exists", "forbidden", "stale", "too_large", "unsupported_media_type", "storage_full"), needs: hasFiles, handle: (*Server).putFile},
	{method: "DELETE", path: "/api/files/{node}/{collection}/{file}", id: "deleteFile", tag: "files", summary: "Delete a file",
		params:  []param{fileMatch, fileNoneMatch, fileSince},
		answers: []answer{{http.StatusNoContent, "", "", "gone"}}, codes: more(readCodes, "bad_request", "forbidden", "stale"), needs: hasFiles, handle: (*Server).deleteFile},
	{method: "GET", path: iconPrefix + "{name}.svg", id: "getIcon", tag: "files", summary: "A built-in icon",
		answers: []answer{{http.StatusOK, "", "image/svg+xml", "the icon, or a plain one for an unknown name"}}, codes: []string{"not_found"}, open: true, handle: (*Server).getIcon},

	{method: "POST", path: "/api/import", id: "import", tag: "operation", summary: "Import a folder of the server", body: "Import", admin: true,
		answers: []answer{{http.StatusAccepted, "Activity", "", "the activity node"}}, codes: []string{"bad_request", "invalid_json", "forbidden", "not_found"},
		needs: func(s *Services) bool { return s.Importer != nil }, handle: (*Server).startImport},
	{method: "GET", path: "/api/why/{address}", id: "why", tag: "operation", summary: "What is observed of the hub at an address, by its silo as well",
		answers: []answer{{http.StatusOK, "Any", "", "what is observed now"}}, codes: pathCodes, needs: hasInspector, asKnown: true, handle: (*Server).why},
	{method: "GET", path: "/api/cluster", id: "cluster", tag: "operation", summary: "What every silo of the cluster says of itself", admin: true,
		answers: []answer{{http.StatusOK, "Cluster", "", "the silos, those that did not answer with the reason"}}, codes: []string{"forbidden"}, needs: hasInspector, asKnown: true, handle: (*Server).cluster},
	{method: "GET", path: "/api/cluster/watch", id: "watchCluster", tag: "live", summary: "The same each second, as server-sent events", admin: true,
		answers: []answer{{http.StatusOK, "", mediaEvents, "an event `status` a second"}}, codes: []string{"forbidden", "overloaded"}, needs: hasInspector, asKnown: true, handle: (*Server).watchCluster},
	{method: "GET", path: "/api/lapses", id: "lapses", tag: "operation", summary: "Recent reads without an answer, newest first", admin: true,
		answers: []answer{{http.StatusOK, "Any", "", "the lapses"}}, codes: []string{"forbidden"}, needs: hasInspector, asKnown: true, handle: (*Server).lapses},
	{method: "GET", path: "/api/whoami", id: "whoami", tag: "operation", summary: "Who the caller is",
		answers: []answer{{http.StatusOK, "WhoAmI", "", "the caller"}}, handle: (*Server).whoami},
	{method: "POST", path: "/api/tokens", id: "createToken", tag: "operation", summary: "Make a token; it is shown this once", body: "TokenRequest", admin: true,
		answers: []answer{{http.StatusOK, "Token", "", "the token"}}, codes: []string{"bad_request", "invalid_json", "forbidden", "storage_full"}, needs: hasTokens, handle: (*Server).createToken},
	{method: "GET", path: "/api/tokens", id: "listTokens", tag: "operation", summary: "Every token, without its secret, newest first", admin: true,
		answers: []answer{{http.StatusOK, "TokenList", "", "the tokens"}}, codes: []string{"forbidden"},
		needs: func(s *Services) bool { return s.TokenList != nil }, handle: (*Server).listTokens},
	{method: "DELETE", path: "/api/tokens/{id}", id: "revokeToken", tag: "operation", summary: "Revoke a token for good", admin: true,
		answers: []answer{{http.StatusNoContent, "", "", "revoked"}}, codes: []string{"forbidden", "not_found"}, needs: hasTokens, handle: (*Server).revokeToken},
	{method: "GET", path: "/api/openapi.json", id: "openapi", tag: "operation", summary: "This document",
		answers: []answer{{http.StatusOK, "Any", "", "OpenAPI 3.1"}}, open: true, handle: (*Server).openAPI},
	{method: "GET", path: errorsPath, id: "errors", tag: "operation", summary: "What each error means and what to do; the type of a problem points here",
		answers: []answer{{http.StatusOK, "", "text/html", "the page, with an anchor for each code"}}, open: true, handle: (*Server).errors},
	{method: "GET", path: "/alive", id: "alive", tag: "operation", summary: "The process runs; depends on nothing else",
		answers: []answer{{http.StatusOK, "Alive", "", "always"}}, open: true, handle: (*Server).alive},
	{method: "GET", path: "/ready", id: "ready", tag: "operation", summary: "The process serves",
		answers: []answer{{http.StatusOK, "Ready", "", "it does"}, {http.StatusServiceUnavailable, "Ready", "", "what it waits for"}}, open: true, handle: (*Server).ready},
	{method: "GET", path: "/metrics", id: "metrics", tag: "operation", summary: "Prometheus text",
		answers: []answer{{http.StatusOK, "", "text/plain", "the metrics"}}, open: true, handle: (*Server).showMetrics},
	{method: "GET", path: "/login", id: "login", tag: "operation", summary: "Exchange a login code for the session cookie",
		params:  []param{{"code", "query", "string", "from the login link"}},
		answers: []answer{{http.StatusSeeOther, "", "", "to the page"}}, codes: []string{"unauthenticated", "rate_limited", "unavailable"}, open: true,
		needs: hasSessions, handle: (*Server).login},
	{method: "POST", path: "/logout", id: "logout", tag: "operation", summary: "End the session",
		answers: []answer{{http.StatusNoContent, "", "", "ended"}}, open: true, needs: hasSessions, handle: (*Server).logout},
}

func hasNodes(s *Services) bool     { return s.Nodes != nil }
func hasTree(s *Services) bool      { return s.Tree != nil }
func hasRenderer(s *Services) bool  { return s.Renderer != nil && s.Nodes != nil }
func hasWatcher(s *Services) bool   { return s.Watcher != nil }
func hasFiles(s *Services) bool     { return s.Files != nil }
func hasInspector(s *Services) bool { return s.Inspector != nil }
func hasTokens(s *Services) bool    { return s.Tokens != nil }
func hasSessions(s *Services) bool  { return s.Sessions != nil }

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

const (
	mediaJSON  = "application/json"
	mediaPatch = "application/merge-patch+json"
)

func nodeURL(path string) string { return "/api/nodes/" + escape(path) }

func get(path string) call { return call{method: http.MethodGet, path: path} }

// Get returns one node.
func (c *Client) Get(ctx context.Context, path string) (Node, error) {
	return fetch[Node](ctx, c, get(nodeURL(path)))
}

// Create creates the node at n.Path.
func (c *Client) Create(ctx context.Context, n Node) (Node, error) {
	return send[Node](ctx, c, call{method: http.MethodPost, path: nodeURL(n.Path)}, n)
}

// CreateMany creates nodes, each with its own outcome, in their order.
func (c *Client) CreateMany(ctx context.Context, nodes []Node) ([]Outcome, error) {
	got, err := send[struct {
		Results []Outcome `json:"results"`
	}](ctx, c, call{method: http.MethodPost, path: "/api/nodes"}, map[string]any{"nodes": nodes})
	return got.Results, err
}

// Put creates the node at n.Path or replaces its writable fields.
func (c *Client) Put(ctx context.Context, n Node, cond If) (Node, error) {
	return send[Node](ctx, c, call{method: http.MethodPut, path: nodeURL(n.Path), header: cond.header()}, n)
}

// Patch merges an RFC 7396 patch, JSON text, over the writable fields of a node.
func (c *Client) Patch(ctx context.Context, path string, patch []byte, cond If) (Node, error) {
	return fetch[Node](ctx, c, call{method: http.MethodPatch, path: nodeURL(path), header: cond.header(), body: bytes.NewReader(patch), media: mediaPatch})
}

// Delete deletes a node, or with recursive its subtree.
func (c *Client) Delete(ctx context.Context, path string, recursive bool, cond If) (Deletion, error) {
	query := url.Values{}
	if recursive {
		query.Set("recursive", "true")
	}
	return fetch[Deletion](ctx, c, call{method: http.MethodDelete, path: nodeURL(path), query: query, header: cond.header()})
}

// Children lists one page of the direct children of a path, "" for the spaces, that follow the child with
// the id after; next is the id to go on from, "" at the end. A limit of 0 is the server's.
func (c *Client) Children(ctx context.Context, path, after string, limit int) (children []Child, next string, err error) {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	got, err := fetch[struct {
		Children []Child `json:"children"`
		Next     string  `json:"next"`
	}](ctx, c, call{method: http.MethodGet, path: "/api/children/" + escape(path), query: query})
	return got.Children, got.Next, err
}

// Versions lists the history of a node below the version before (0: from the newest), newest first. A
// limit of 0 is the server's.
func (c *Client) Versions(ctx context.Context, path string, before int64, limit int) ([]Version, error) {
	query := url.Values{}
	if before > 0 {
		query.Set("before", strconv.FormatInt(before, 10))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	got, err := fetch[struct {
		Versions []Version `json:"versions"`
	}](ctx, c, call{method: http.MethodGet, path: "/api/versions/" + escape(path), query: query})
	return got.Versions, err
}

// At returns a node as it was at a version.
func (c *Client) At(ctx context.Context, path string, version int64) (Node, error) {
	return fetch[Node](ctx, c, call{method: http.MethodGet, path: "/api/versions/" + escape(path), query: url.Values{"at": {strconv.FormatInt(version, 10)}}})
}

// Query returns the nodes that match.
func (c *Client) Query(ctx context.Context, q string) (Result, error) {
	return fetch[Result](ctx, c, call{method: http.MethodGet, path: "/api/query", query: url.Values{"q": {q}}})
}

// WhoAmI tells who the caller is.
func (c *Client) WhoAmI(ctx context.Context) (Identity, error) {
	return fetch[Identity](ctx, c, get("/api/whoami"))
}

// Why returns what the process knows about the hub at an address, as JSON.
func (c *Client) Why(ctx context.Context, address string) (json.RawMessage, error) {
	return fetch[json.RawMessage](ctx, c, get("/api/why/"+escape(address)))
}

// ClusterStatus returns what every silo of the cluster says of itself, as JSON; one that did not answer is
// named with the reason.
func (c *Client) ClusterStatus(ctx context.Context) (json.RawMessage, error) {
	return fetch[json.RawMessage](ctx, c, get("/api/cluster"))
}

// Lapses returns the recent reads without an answer, newest first, as JSON.
func (c *Client) Lapses(ctx context.Context) (json.RawMessage, error) {
	return fetch[json.RawMessage](ctx, c, get("/api/lapses"))
}

// StartImport starts an import and returns the path of its activity node: watch it.
func (c *Client) StartImport(ctx context.Context, what Import) (activity string, err error) {
	got, err := send[struct {
		Activity string `json:"activity"`
	}](ctx, c, call{method: http.MethodPost, path: "/api/import"}, what)
	return got.Activity, err
}

// CreateToken makes a token that speaks as subject.
func (c *Client) CreateToken(ctx context.Context, subject, name string) (NewToken, error) {
	return send[NewToken](ctx, c, call{method: http.MethodPost, path: "/api/tokens"}, map[string]string{"subject": subject, "name": name})
}

// Tokens lists every token, newest first.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	got, err := fetch[struct {
		Tokens []Token `json:"tokens"`
	}](ctx, c, get("/api/tokens"))
	return got.Tokens, err
}

// RevokeToken ends a token for good.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: "/api/tokens/" + escape(id)}, nil)
}

// FileIf makes a change of a file depend on the one that is there. The zero value is "whatever is there".
type FileIf struct {
	ETag   string // the file that must be there, by its tag; "*" is any
	Absent bool   // there must be none
}

// header is the condition as it is sent.
func (f FileIf) header() http.Header {
	h := http.Header{}
	if f.ETag != "" {
		h.Set("If-Match", f.ETag)
	}
	if f.Absent {
		h.Set("If-None-Match", "*")
	}
	return h
}

// Upload stores a file in a collection of a node, whatever is there. It takes as long as the body does.
func (c *Client) Upload(ctx context.Context, node, collection, file string, body io.Reader) (Uploaded, error) {
	return c.UploadIf(ctx, node, collection, file, body, FileIf{})
}

// UploadIf is Upload where the condition holds; else the error's code is "stale" and nothing was stored.
func (c *Client) UploadIf(ctx context.Context, node, collection, file string, body io.Reader, when FileIf) (Uploaded, error) {
	var got Uploaded
	resp, err := c.begin(ctx, call{method: http.MethodPut, path: filePath(node, collection, file), body: body, media: "application/octet-stream", header: when.header()})
	if err != nil {
		return got, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	err = json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&got)
	return got, err
}

// DeleteFile deletes a file where the condition holds.
func (c *Client) DeleteFile(ctx context.Context, node, collection, file string, when FileIf) error {
	return c.do(ctx, call{method: http.MethodDelete, path: filePath(node, collection, file), header: when.header()}, nil)
}

func filePath(node, collection, file string) string {
	return "/api/files/" + escape(node) + "/" + escape(collection) + "/" + escape(file)
}

// Download opens a file of a published collection. The caller closes it.
func (c *Client) Download(ctx context.Context, node, collection, file string) (io.ReadCloser, error) {
	resp, err := c.begin(ctx, call{method: http.MethodGet, path: "/api/content/" + escape(node) + "/" + escape(collection) + "/" + escape(file)})
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeout bounds one request, streams and uploads excepted. The server's own bounds are shorter,
// so that its diagnosis arrives first.
const DefaultTimeout = 75 * time.Second

// maxAnswer bounds what is read of one answer.
const maxAnswer = 256 << 20

// errTimeout is the cause of a request that the client gave up.
var errTimeout = errors.New("the server did not answer within the client's time limit")

// Options make a client. Server is needed.
type Options struct {
	Server  string        // such as http://127.0.0.1:8080
	Token   string        // "" is an anonymous caller
	HTTP    *http.Client  // nil: one of its own; its Timeout must be 0, or it cuts streams
	Timeout time.Duration // of one request; 0 is DefaultTimeout
}

// Client is one server as one caller.
type Client struct {
	base    string
	token   string
	http    *http.Client
	timeout time.Duration
	random  func() float64 // for tests
}

// New returns a client; an error says what is wrong with the address.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.Server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no server address: want http://HOST:PORT", o.Server)
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/"), token: o.Token, http: o.HTTP, timeout: o.Timeout}
	if c.http == nil {
		c.http = &http.Client{}
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	return c, nil
}

// call is one request.
type call struct {
	method string
	path   string // escaped
	query  url.Values
	header http.Header
	body   io.Reader
	media  string
}

// begin sends a request and returns a good answer; another is its *Error. The caller closes the body.
func (c *Client) begin(ctx context.Context, r call) (*http.Response, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.media != "" {
		req.Header.Set("Content-Type", r.media)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, c.base, err)
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close() //nolint:errcheck // read only
		return nil, errorOf(c.base, resp)
	}
	return resp, nil
}

// do sends a request and reads its JSON answer into v, unless v is nil.
func (c *Client) do(ctx context.Context, r call, v any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	resp, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return unreachable(ctx, c.base, err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &Error{Code: CodeUnexpected, Status: resp.StatusCode, Title: "The answer is not of this API", Detail: err.Error(), Retry: Never}
	}
	return nil
}

// fetch is do with a result.
func fetch[T any](ctx context.Context, c *Client, r call) (T, error) {
	var got T
	err := c.do(ctx, r, &got)
	return got, err
}

// send is fetch with a JSON body.
func send[T any](ctx context.Context, c *Client, r call, body any) (T, error) {
	text, err := json.Marshal(body)
	if err != nil {
		var none T
		return none, err
	}
	r.body, r.media = bytes.NewReader(text), mediaJSON
	return fetch[T](ctx, c, r)
}

// escape percent-encodes the segments of a path; outer slashes are dropped.
func escape(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// If makes a write conditional. The zero value is "whatever is there".
type If struct {
	Version int64 // the version that must be stored
	Absent  bool  // there must be no node; for Put
}

func (i If) header() http.Header {
	h := http.Header{}
	if i.Version != 0 {
		h.Set("If-Match", `"`+strconv.FormatInt(i.Version, 10)+`"`)
	}
	if i.Absent {
		h.Set("If-None-Match", "*")
	}
	return h
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// said is what a server was asked.
type said struct {
	method, target, auth, media, match, none, body string
}

// talk returns a client of a server that answers as told and remembers what it was asked.
func talk(t *testing.T, status int, header http.Header, answer string) (*Client, *said) {
	t.Helper()
	got := &said{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*got = said{r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), string(body)}
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	c, err := New(Options{Server: server.URL + "/", Token: "hm_x", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return c, got
}

func TestEachVerbIsItsRequest(t *testing.T) {
	const auth = "Bearer hm_x"
	tests := []struct {
		name   string
		answer string
		do     func(context.Context, *Client) (any, error)
		asked  said
		want   any
	}{
		{"get", `{"path":"a/b c","version":3,"content":{"x":1}}`, func(ctx context.Context, c *Client) (any, error) { return c.Get(ctx, "/a/b c") },
			said{method: "GET", target: "/api/nodes/a/b%20c", auth: auth}, Node{Path: "a/b c", Version: 3, Content: json.RawMessage(`{"x":1}`)}},
		{"create", `{"path":"a"}`, func(ctx context.Context, c *Client) (any, error) { return c.Create(ctx, Node{Path: "a", Name: "A"}) },
			said{method: "POST", target: "/api/nodes/a", auth: auth, media: "application/json", body: `{"path":"a","name":"A"}`}, Node{Path: "a"}},
		{"create many", `{"results":[{"path":"a","version":1},{"path":"b","error":{"code":"exists"}}]}`, func(ctx context.Context, c *Client) (any, error) {
			return c.CreateMany(ctx, []Node{{Path: "a"}, {Path: "b"}})
		}, said{method: "POST", target: "/api/nodes", auth: auth, media: "application/json", body: `{"nodes":[{"path":"a"},{"path":"b"}]}`},
			[]Outcome{{Path: "a", Version: 1}, {Path: "b", Error: map[string]any{"code": "exists"}}}},
		{"put if", `{}`, func(ctx context.Context, c *Client) (any, error) { return c.Put(ctx, Node{Path: "a"}, If{Version: 7}) },
			said{method: "PUT", target: "/api/nodes/a", auth: auth, media: "application/json", match: `"7"`, body: `{"path":"a"}`}, Node{}},
		{"put new", `{}`, func(ctx context.Context, c *Client) (any, error) {
			return c.Put(ctx, Node{Path: "a"}, If{Absent: true})
		}, said{method: "PUT", target: "/api/nodes/a", auth: auth, media: "application/json", none: "*", body: `{"path":"a"}`}, Node{}},
		{"patch", `{}`, func(ctx context.Context, c *Client) (any, error) {
			return c.Patch(ctx, "a", []byte(`{"name":null}`), If{})
		}, said{method: "PATCH", target: "/api/nodes/a", auth: auth, media: "application/merge-patch+json", body: `{"name":null}`}, Node{}},
		{"delete", `{"deleted":2,"version":5}`, func(ctx context.Context, c *Client) (any, error) { return c.Delete(ctx, "a", true, If{Version: 4}) },
			said{method: "DELETE", target: "/api/nodes/a?recursive=true", auth: auth, match: `"4"`}, Deletion{Deleted: 2, Version: 5}},
		{"children", `{"children":[{"path":"a/b","id":"b"}],"next":"b"}`, func(ctx context.Context, c *Client) (any, error) {
			list, next, err := c.Children(ctx, "", "a", 1)
			return []any{list, next}, err
		}, said{method: "GET", target: "/api/children/?after=a&limit=1", auth: auth}, []any{[]Child{{Path: "a/b", ID: "b"}}, "b"}},
		{"versions", `{"versions":[{"version":2,"kind":"updated"}]}`, func(ctx context.Context, c *Client) (any, error) { return c.Versions(ctx, "a", 9, 3) },
			said{method: "GET", target: "/api/versions/a?before=9&limit=3", auth: auth}, []Version{{Version: 2, Kind: "updated"}}},
		{"at", `{"version":2}`, func(ctx context.Context, c *Client) (any, error) { return c.At(ctx, "a", 2) },
			said{method: "GET", target: "/api/versions/a?at=2", auth: auth}, Node{Version: 2}},
		{"query", `{"nodes":[{"path":"a"}],"truncated":true}`, func(ctx context.Context, c *Client) (any, error) { return c.Query(ctx, "name:a b") },
			said{method: "GET", target: "/api/query?q=name%3Aa+b", auth: auth}, Result{Nodes: []Node{{Path: "a"}}, Truncated: true}},
		{"whoami", `{"subject":"bob"}`, func(ctx context.Context, c *Client) (any, error) { return c.WhoAmI(ctx) },
			said{method: "GET", target: "/api/whoami", auth: auth}, Identity{Subject: "bob"}},
		{"why", `{"a":1}`, func(ctx context.Context, c *Client) (any, error) { return c.Why(ctx, "mesh/1") },
			said{method: "GET", target: "/api/why/mesh/1", auth: auth}, json.RawMessage(`{"a":1}`)},
		{"lapses", `[]`, func(ctx context.Context, c *Client) (any, error) { return c.Lapses(ctx) },
			said{method: "GET", target: "/api/lapses", auth: auth}, json.RawMessage(`[]`)},
		{"import", `{"activity":"a/_Activity/1"}`, func(ctx context.Context, c *Client) (any, error) {
			return c.StartImport(ctx, Import{Source: "/x", Into: "Doc"})
		}, said{method: "POST", target: "/api/import", auth: auth, media: "application/json", body: `{"source":"/x","into":"Doc"}`}, "a/_Activity/1"},
		{"token", `{"token":"hm_y","id":"1"}`, func(ctx context.Context, c *Client) (any, error) { return c.CreateToken(ctx, "bob", "n") },
			said{method: "POST", target: "/api/tokens", auth: auth, media: "application/json", body: `{"name":"n","subject":"bob"}`}, NewToken{Token: "hm_y", ID: "1"}},
		{"tokens", `{"tokens":[{"id":"1","subject":"bob"}]}`, func(ctx context.Context, c *Client) (any, error) { return c.Tokens(ctx) },
			said{method: "GET", target: "/api/tokens", auth: auth}, []Token{{ID: "1", Subject: "bob"}}},
		{"revoke", ``, func(ctx context.Context, c *Client) (any, error) { return nil, c.RevokeToken(ctx, "1") },
			said{method: "DELETE", target: "/api/tokens/1", auth: auth}, nil},
		{"upload", `{"url":"/u","size":1}`, func(ctx context.Context, c *Client) (any, error) {
			return c.Upload(ctx, "a", "content", "d/f#.txt", strings.NewReader("x"))
		}, said{method: "PUT", target: "/api/files/a/content/d/f%23.txt", auth: auth, media: "application/octet-stream", body: "x"}, Uploaded{URL: "/u", Size: 1}},
		{"upload of what was read", `{"url":"/u","size":1,"etag":"\"t\""}`, func(ctx context.Context, c *Client) (any, error) {
			return c.UploadIf(ctx, "a", "content", "f", strings.NewReader("x"), FileIf{ETag: `"s"`})
		}, said{method: "PUT", target: "/api/files/a/content/f", auth: auth, media: "application/octet-stream", match: `"s"`, body: "x"}, Uploaded{URL: "/u", Size: 1, ETag: `"t"`}},
		{"upload where nothing is", `{"url":"/u","size":1}`, func(ctx context.Context, c *Client) (any, error) {
			return c.UploadIf(ctx, "a", "content", "f", strings.NewReader("x"), FileIf{Absent: true})
		}, said{method: "PUT", target: "/api/files/a/content/f", auth: auth, media: "application/octet-stream", none: "*", body: "x"}, Uploaded{URL: "/u", Size: 1}},
		{"delete a file", ``, func(ctx context.Context, c *Client) (any, error) {
			return nil, c.DeleteFile(ctx, "a", "content", "f", FileIf{ETag: "*"})
		}, said{method: "DELETE", target: "/api/files/a/content/f", auth: auth, match: "*"}, nil},
		{"download", `bytes`, func(ctx context.Context, c *Client) (any, error) {
			body, err := c.Download(ctx, "a", "content", "f")
			if err != nil {
				return nil, err
			}
			defer body.Close()
			text, err := io.ReadAll(body)
			return string(text), err
		}, said{method: "GET", target: "/api/content/a/content/f", auth: auth}, "bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, asked := talk(t, 200, nil, test.answer)
			got, err := test.do(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.asked, *asked, cmp.AllowUnexported(said{})); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProblemIsATypedError(t *testing.T) {
	c, _ := talk(t, 503, http.Header{"Retry-After": {"7"}}, `{"type":"/api/errors#lapsed","title":"T","status":503,"detail":"D","code":"lapsed","retry":"after","clause":"STILL STARTING"}`)
	_, err := c.Get(t.Context(), "a")
	var e *Error
	if !errors.As(err, &e) || !HasCode(err, "other", "lapsed") || e.Status != 503 || e.Retry != After || e.RetryAfter != 7*time.Second ||
		e.Members["clause"] != "STILL STARTING" || e.Error() != "D (lapsed)" || e.Type != c.base+"/api/errors#lapsed" {
		t.Fatalf("%+v", err)
	}
}

func TestWhatIsNotOfThisAPIIsToldApart(t *testing.T) {
	for _, test := range []struct {
		status int
		answer string
		retry  Retry
	}{{502, "<html>Bad Gateway", After}, {404, "no such page", Never}, {200, "<html>", Never}} {
		c, _ := talk(t, test.status, nil, test.answer)
		_, err := c.Get(t.Context(), "a")
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeUnexpected || e.Retry != test.retry {
			t.Errorf("%d %s: %+v", test.status, test.answer, err)
		}
	}
}

func TestAServerThatIsNotThereIsNamed(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	c, err := New(Options{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Get(t.Context(), "a")
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeNetwork || e.Retry != After || !strings.Contains(e.Detail, server.URL) || !strings.Contains(e.Detail, "connection refused") {
		t.Fatalf("%+v", err)
	}
}

func TestAServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	c, err := New(Options{Server: server.URL, Timeout: 20 * time.Millisecond, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Get(t.Context(), "a"); !HasCode(err, CodeTimeout) {
		t.Fatalf("%+v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = c.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("the caller's own end: %+v", err)
	}
}

func TestAnAddressIsChecked(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://", "http://h?x=1", "http://h#a", "://"} {
		if _, err := New(Options{Server: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzMergeKeepsToJSON(f *testing.F) {
	f.Add(`{"a":{"b":1,"c":2}}`, `{"a":{"b":null}}`)
	f.Add(`[]`, `{"a":1.50e3}`)
	f.Add(``, `null`)
	f.Fuzz(func(t *testing.T, target, patch string) {
		if !json.Valid([]byte(patch)) || target != "" && !json.Valid([]byte(target)) {
			return
		}
		got, err := merge(json.RawMessage(target), json.RawMessage(patch))
		if err != nil || !json.Valid(got) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestAMergeKeepsNumbersAsTheyAre(t *testing.T) {
	got, err := merge(json.RawMessage(`{"a":12345678901234567890,"b":{"c":1,"d":2},"e":[1]}`), json.RawMessage(`{"b":{"c":null,"f":1.50},"e":{"g":null}}`))
	if err != nil || string(got) != `{"a":12345678901234567890,"b":{"d":2,"f":1.50},"e":{}}` {
		t.Fatalf("%s, %v", got, err)
	}
}

func FuzzAStreamNeverPanics(f *testing.F) {
	f.Add("event: full\ndata: {\"version\":1,\"node\":{}}\n\n: beat\n\nevent: end\ndata: {}\n\n")
	f.Add("data\r\n\r\n\n\ndata: a\ndata: b\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		w := &watch{c: &Client{}, fn: func(Event) error { return nil }}
		_ = readEvents(strings.NewReader(stream), func() {}, w.take) // any error is fine
	})
}

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// mesh is a small mesh in memory: enough to serve every route. Fail, when set, answers every call.
type mesh struct {
	mu      sync.Mutex
	nodes   map[node.Path]node.Node
	files   map[string]string
	fail    error
	nothing bool       // is granted to visitors
	feed    chan Frame // what a watch emits after its first frame
	whole   chan struct{}
	calls   []string
	resumed Held                  // of the last watch
	create  func(context.Context) // runs in a create, when set
	cond    FileCondition         // of the last change of a file
	pass    *pass                 // of those with a token; nil is one without an end
	was     map[string]bool       // subjects that were known, and whether they were Admin
	unsure  bool                  // nobody can be determined
}

func newMesh(nodes ...node.Node) *mesh {
	m := &mesh{nodes: map[node.Path]node.Node{}, files: map[string]string{}, feed: make(chan Frame), whole: make(chan struct{})}
	for _, n := range nodes {
		m.nodes[n.Path] = n
	}
	return m
}

func doc(path string, version int64) node.Node {
	p := node.Path(path)
	return node.Node{Path: p, MainNode: p.Main(), Name: p.ID(), NodeType: node.TypeMarkdown, State: node.StateActive, Version: version,
		Content: node.RawContent(`{"markdown":"# Hi"}`)}
}

func (m *mesh) call(ctx context.Context, what string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, message.IdentityFrom(ctx).Subject+" "+what)
	return m.fail
}

func (m *mesh) Get(ctx context.Context, path node.Path) (node.Node, error) {
	if err := m.call(ctx, "get "+string(path)); err != nil {
		return node.Node{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.nodes[path]
	if !ok {
		return node.Node{}, &store.NotFoundError{Path: path}
	}
	return n, nil
}

func (m *mesh) Create(ctx context.Context, n node.Node) (node.Node, error) {
	if err := m.call(ctx, "create "+string(n.Path)); err != nil {
		return node.Node{}, err
	}
	if m.create != nil {
		m.create(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.nodes[n.Path]; ok {
		return node.Node{}, &store.ExistsError{Path: n.Path, Version: old.Version}
	}
	if n.Path.Partition() == "nowhere" {
		return node.Node{}, &store.PartitionError{Partition: "nowhere", Reason: "missing"}
	}
	n.Version = 1
	m.nodes[n.Path] = n
	return n, nil
}

func (m *mesh) CreateMany(ctx context.Context, nodes []node.Node) ([]Outcome, error) {
	outcomes := make([]Outcome, len(nodes))
	for i, n := range nodes {
		created, err := m.Create(ctx, n)
		outcomes[i] = Outcome{Path: n.Path, Version: created.Version, Err: err}
	}
	return outcomes, nil
}

func (m *mesh) Put(ctx context.Context, n node.Node, cond Condition) (node.Node, bool, error) {
	if err := m.call(ctx, "put "+string(n.Path)); err != nil {
		return node.Node{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.nodes[n.Path]
	switch {
	case ok && cond.Absent:
		return node.Node{}, false, &store.ExistsError{Path: n.Path, Version: old.Version}
	case !ok && (cond.Present || cond.Version != 0):
		return node.Node{}, false, &store.NotFoundError{Path: n.Path}
	case cond.Version != 0 && cond.Version != old.Version:
		return node.Node{}, false, &store.ConflictError{Path: n.Path, Expected: cond.Version, Actual: old.Version}
	}
	n.Version = old.Version + 1
	m.nodes[n.Path] = n
	return n, !ok, nil
}

func (m *mesh) Patch(ctx context.Context, path node.Path, patch []byte, cond Condition) (node.Node, error) {
	n, err := m.Get(ctx, path)
	if err != nil {
		return node.Node{}, err
	}
	if cond.Version != 0 && cond.Version != n.Version {
		return node.Node{}, &store.ConflictError{Path: path, Expected: cond.Version, Actual: n.Version}
	}
	if n, err = node.ApplyPatch(n, patch, node.DefaultLimits); err != nil {
		return node.Node{}, err
	}
	n.Version++
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes[path] = n
	return n, nil
}

// hasChildren is an error as an upper package makes it: with a code of its own.
type hasChildren struct{}

func (hasChildren) Error() string       { return "the node has children" }
func (hasChildren) ProblemCode() string { return "has_children" }

func (m *mesh) Delete(ctx context.Context, path node.Path, recursive bool, cond Condition) (Deletion, error) {
	n, err := m.Get(ctx, path)
	if err != nil {
		return Deletion{}, err
	}
	if cond.Version != 0 && cond.Version != n.Version {
		return Deletion{}, &store.ConflictError{Path: path, Expected: cond.Version, Actual: n.Version}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []node.Path
	for p := range m.nodes {
		if path.Contains(p) {
			gone = append(gone, p)
		}
	}
	if len(gone) > 1 && !recursive {
		return Deletion{}, hasChildren{}
	}
	for _, p := range gone {
		delete(m.nodes, p)
	}
	return Deletion{Deleted: len(gone), Version: n.Version + 1}, nil
}

func (m *mesh) Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, string, error) {
	if err := m.call(ctx, "children "+string(path)); err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []store.Entry
	for p, n := range m.nodes {
		if p.Parent() == path && p != "" && p.ID() > page.After {
			list = append(list, store.Entry{Path: p, Node: &n})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	if page.Limit > 0 && len(list) > page.Limit {
		return list[:page.Limit], list[page.Limit-1].Path.ID(), nil
	}
	return list, "", nil
}

func (m *mesh) Versions(ctx context.Context, path node.Path, _ store.VersionPage) ([]store.VersionInfo, error) {
	n, err := m.Get(ctx, path)
	if errors.As(err, new(*store.NotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []store.VersionInfo{{Version: n.Version, Kind: store.Updated, By: "bob"}}, nil
}

func (m *mesh) At(ctx context.Context, path node.Path, version int64) (node.Node, error) {
	n, err := m.Get(ctx, path)
	if err == nil && version > n.Version {
		err = &store.NotFoundError{Path: path, Version: version}
	}
	n.Version = version
	return n, err
}

func (m *mesh) Query(ctx context.Context, q query.Query) ([]node.Node, bool, error) {
	if err := m.call(ctx, "query "+q.String()); err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []node.Node
	for _, n := range m.nodes {
		if q.Match(n) {
			found = append(found, n)
		}
	}
	return found, false, nil
}

func (m *mesh) Render(ctx context.Context, path node.Path) (string, int64, error) {
	n, err := m.Get(ctx, path)
	return "<h1>Hi</h1>", n.Version, err
}

func (m *mesh) RenderText(ctx context.Context, _ node.Path, markdown string) (string, error) {
	return "<p>" + markdown + "</p>", m.call(ctx, "render")
}

// Watch emits the node, or nothing to a client that has it, and then the feed.
func (m *mesh) Watch(ctx context.Context, path node.Path, after Held, _ Turn, emit func(Frame) error) error {
	n, err := m.Get(ctx, path)
	if err != nil {
		return err
	}
	first := Frame{Kind: Full, Version: n.Version, Node: n}
	m.mu.Lock()
	m.resumed = after
	m.mu.Unlock()
	if after.Version == n.Version {
		first = Frame{Kind: Current, Version: n.Version}
	}
	for {
		if err := emit(first); err != nil {
			return err
		}
		select {
		case next, ok := <-m.feed:
			if !ok {
				return m.failure()
			}
			first = next
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *mesh) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fail
}

func (m *mesh) WatchChildren(ctx context.Context, path node.Path, _ Turn, emit func([]store.Entry) error) error {
	for {
		list, _, err := m.Children(ctx, path, store.Page{})
		if err != nil {
			return err
		}
		if err := emit(list); err != nil {
			return err
		}
		select {
		case <-m.whole:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *mesh) WatchQuery(ctx context.Context, q query.Query, _ Turn, emit func([]node.Node, bool) error) error {
	for {
		found, truncated, err := m.Query(ctx, q)
		if err != nil {
			return err
		}
		if err := emit(found, truncated); err != nil {
			return err
		}
		select {
		case <-m.whole:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type closer struct{ io.ReadSeeker }

func (closer) Close() error { return nil }

func (m *mesh) Open(ctx context.Context, segments []string) (*File, error) {
	if err := m.call(ctx, "open "+strings.Join(segments, "|")); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.files[strings.Join(segments, "/")]
	if !ok {
		return nil, &store.NotFoundError{Path: "internal/detail"}
	}
	return &File{Name: segments[len(segments)-1], Size: int64(len(text)), Modified: time.Unix(1700000000, 0), Body: closer{strings.NewReader(text)}}, nil
}

func (m *mesh) List(ctx context.Context, path node.Path, collection, dir string) ([]FileEntry, error) {
	return []FileEntry{{Name: "a.txt", Size: 1}}, m.call(ctx, "list "+string(path)+" "+collection+" "+dir)
}

func (m *mesh) Write(ctx context.Context, segments []string, body io.Reader, cond FileCondition) (StoredFile, error) {
	if err := m.call(ctx, "write "+strings.Join(segments, "|")); err != nil {
		return StoredFile{}, err
	}
	if segments[0] == "none" {
		return StoredFile{}, &store.NotFoundError{Path: "none"}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return StoredFile{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := strings.Join(segments, "/")
	_, had := m.files[key]
	m.files[key], m.cond = string(text), cond
	return StoredFile{URL: contentPrefix + key, Size: int64(len(text)), ETag: tagOf(string(text)), Created: !had}, nil
}

func (m *mesh) Remove(ctx context.Context, segments []string, cond FileCondition) error {
	m.mu.Lock()
	m.cond = cond
	m.mu.Unlock()
	return m.call(ctx, "remove "+strings.Join(segments, "|"))
}

func (m *mesh) Import(ctx context.Context, r ImportRequest) (node.Path, error) {
	return "acme/_Activity/1", m.call(ctx, "import "+r.Source)
}

func (m *mesh) Why(ctx context.Context, address string) (any, error) {
	return map[string]string{"address": address}, m.call(ctx, "why "+address)
}

func (m *mesh) Lapses(ctx context.Context) (any, error) { return []string{}, m.call(ctx, "lapses") }

func (m *mesh) Cluster(ctx context.Context) (any, error) {
	return map[string]any{"cluster": true, "askedBy": "a", "answered": 1, "missing": []string{}, "silos": []string{}}, m.call(ctx, "cluster")
}

func (m *mesh) HoldsNothing(context.Context) bool { return m.nothing }

func (m *mesh) IsAdmin(ctx context.Context) (bool, error) {
	if m.unsure {
		return false, &access.UndeterminedError{}
	}
	return message.IdentityFrom(ctx).Subject == "root", nil
}

func (m *mesh) WasAdmin(ctx context.Context) bool {
	return m.was[message.IdentityFrom(ctx).Subject]
}

// AsKnown knows those that was says of.
func (m *mesh) AsKnown(r *http.Request) (*message.Identity, Credential, error) {
	subject := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if _, known := m.was[subject]; known {
		return &message.Identity{Subject: subject}, nil, nil
	}
	return nil, nil, errors.New("not known")
}

// Authenticate takes the name of the subject for its token.
func (m *mesh) Authenticate(r *http.Request) (*message.Identity, Credential, error) {
	subject, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case subject == "wrong":
		return nil, nil, problem("unauthenticated", "this token is not known")
	case subject == "away":
		return nil, nil, problem("unavailable", "the token could not be checked; keep it and try again")
	case ok && m.unsure:
		return nil, nil, problem("unavailable", "the token could not be checked; keep it and try again")
	case ok:
		return &message.Identity{Subject: subject}, m.credential(), nil
	}
	return message.AnonymousIdentity(), nil, nil
}

// pass is a credential that a test ends.
type pass struct {
	over     chan struct{}
	refused  error
	followed chan struct{} // a place for each follower that has not let go
}

func (p *pass) Follow(context.Context) (<-chan struct{}, func(), error) {
	if p.refused != nil {
		return nil, nil, p.refused
	}
	p.followed <- struct{}{}
	return p.over, func() { <-p.followed }, nil
}

func (m *mesh) credential() Credential {
	if m.pass == nil {
		return nil
	}
	return m.pass
}

func (m *mesh) Login(_ *http.Request, code string) (*http.Cookie, error) {
	if code != "good" {
		return nil, problem("unauthenticated", "this login link was used already")
	}
	return &http.Cookie{Name: "hubmesh_session", Value: "s", HttpOnly: true}, nil
}

func (m *mesh) Logout(*http.Request) (*http.Cookie, error) {
	return &http.Cookie{Name: "hubmesh_session", MaxAge: -1}, nil
}

func (m *mesh) Issue(ctx context.Context, subject, _ string) (string, string, error) {
	return "hm_secret", "0123", m.call(ctx, "issue "+subject)
}

func (m *mesh) Revoke(ctx context.Context, id string) error { return m.call(ctx, "revoke "+id) }

func (m *mesh) ListTokens(ctx context.Context) (any, error) {
	return map[string][]string{"tokens": {}}, m.call(ctx, "tokens")
}

func (m *mesh) services() Services {
	return Services{Nodes: m, Bulk: m, Tree: m, Renderer: m, Watcher: m, Content: m, Files: m, Importer: m, Inspector: m,
		Rights: m, Caller: m, Sessions: m, Tokens: m, TokenList: m}
}

// serve returns a server over m, and its URL. Change may alter its configuration.
func serve(t testing.TB, m *mesh, change ...func(*Config)) (*Server, string) {
	t.Helper()
	c := Config{Services: m.services(), Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		web.CloseClientConnections()
		web.Close()
	})
	return s, web.URL
}

// reply is what a request got.
type reply struct {
	status int
	header http.Header
	body   string
}

// send makes a request whose target is sent as it is written.
func send(t testing.TB, base, method, target string, headers []string, body io.Reader) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base, body)
	if err != nil {
		t.Fatal(err)
	}
	path, rawQuery, _ := strings.Cut(target, "?")
	r.URL = &url.URL{Scheme: "http", Host: r.URL.Host, Opaque: path, RawQuery: rawQuery}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// scenario is one request and what it must get. A want that begins with "!" must not be in the body; one
// of the form "Header: value" is looked for in the header.
type scenario struct {
	name    string
	method  string
	target  string
	headers []string
	body    string
	status  int
	want    []string
}

func (c scenario) run(t *testing.T, base string) {
	t.Helper()
	var body io.Reader
	if c.body != "" {
		body = bytes.NewReader([]byte(c.body))
	}
	got := send(t, base, c.method, c.target, c.headers, body)
	if got.status != c.status {
		t.Fatalf("%s %s: status %d, want %d: %s", c.method, c.target, got.status, c.status, got.body)
	}
	for _, want := range c.want {
		name, value, isHeader := strings.Cut(want, ": ")
		without, absent := strings.CutPrefix(want, "!")
		switch {
		case absent:
			if strings.Contains(got.body, without) {
				t.Errorf("the body has %q: %s", without, got.body)
			}
		case isHeader && strings.EqualFold(http.CanonicalHeaderKey(name), name) && !strings.ContainsAny(name, ` {"`):
			if !strings.Contains(got.header.Get(name), value) {
				t.Errorf("%s is %q, want %q", name, got.header.Get(name), value)
			}
		case !strings.Contains(got.body, want):
			t.Errorf("the body lacks %q: %s", want, got.body)
		}
	}
}

func runAll(t *testing.T, base string, scenarios []scenario) {
	t.Helper()
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) { c.run(t, base) })
	}
}

package demo

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/httpapi"
)

const (
	cookieName = "hubmesh_demo"
	// stateEvery is the shortest time between two states that are told, and stateBeat the longest between two
	// signs of life.
	stateEvery = 200 * time.Millisecond
	stateBeat  = 10 * time.Second
	maxBody    = 4 << 10
)

// State is what is observed of the silos from outside.
type State struct {
	At     time.Time   `json:"at"`
	Node   NodeState   `json:"node"`
	Silos  []SiloState `json:"silos"`
	Links  []LinkState `json:"links"`
	Events []Event     `json:"events"`
}

// NodeState tells who serves the node that is typed into.
type NodeState struct {
	Path     string   `json:"path"`
	ServedBy []string `json:"servedBy"`
}

// SiloState is one silo. A status is the last that was observed: a silo that is frozen or was killed keeps it.
type SiloState struct {
	Name     string          `json:"name"`
	State    string          `json:"state"`
	Since    time.Time       `json:"since"`
	Why      string          `json:"why,omitempty"` // of one that failed
	URL      string          `json:"url"`
	Ready    bool            `json:"ready"`
	Waiting  []string        `json:"waiting"`
	Front    FrontState      `json:"front"`
	Status   json.RawMessage `json:"status"`
	StatusAt time.Time       `json:"statusAt"`
}

// FrontState is what the front door has to do with a silo: sums, and what is open now.
type FrontState struct {
	Requests int `json:"requests"`
	Streams  int `json:"streams"`
	Failed   int `json:"failed"`
}

// LinkState is the link between two silos.
type LinkState struct {
	A   string `json:"a"`
	B   string `json:"b"`
	Cut bool   `json:"cut"`
}

// State looks at everything. It does not block.
func (d *Demo) State() State {
	st := State{At: time.Now().UTC(), Node: NodeState{Path: NodePath, ServedBy: []string{}}, Events: d.events.newest()}
	for _, s := range d.silos {
		one, serves := s.describe()
		st.Silos = append(st.Silos, one)
		if serves {
			st.Node.ServedBy = append(st.Node.ServedBy, s.name)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, a := range d.silos {
		for _, b := range d.silos[i+1:] {
			st.Links = append(st.Links, LinkState{a.name, b.name, d.cuts[[2]string{a.name, b.name}]})
		}
	}
	return st
}

func (s *silo) describe() (st SiloState, serves bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st = SiloState{Name: s.name, State: s.state, Since: s.since, Why: s.why, Ready: s.door.ready, Waiting: s.door.waiting, Status: s.status, StatusAt: s.statusAt,
		Front: FrontState{s.door.requests, s.door.streams, s.door.failed}}
	if st.Waiting == nil {
		st.Waiting = []string{}
	}
	if s.state == up || s.state == frozen || s.state == leaving {
		st.URL = "http://" + s.addr
	}
	return st, s.serves
}

// routes are those of the front door itself; everything else is a silo's to answer.
func (f *front) routes() {
	f.mux.HandleFunc("GET /login", f.login)
	f.mux.HandleFunc("GET /api/demo/state", f.allowed(f.state))
	f.mux.HandleFunc("POST /api/demo/silos/{name}", f.allowed(f.act))
	f.mux.HandleFunc("POST /api/demo/links", f.allowed(f.link))
	f.mux.HandleFunc("/api/demo/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, "not_found", "the demonstration has no such route")
	})
	f.mux.Handle("/", f.proxy)
}

// Handler is the front door.
func (d *Demo) Handler() http.Handler { return d.front.mux }

// LoginPath signs a browser in, as often as it is opened.
func (d *Demo) LoginPath() string { return "/login?code=" + d.secret }

func fail(w http.ResponseWriter, code, detail string) {
	(&httpapi.Problem{Code: code, Detail: detail}).Write(w)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// login signs in at a silo that is ready, with a code of that silo.
func (f *front) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	if !same(r.URL.Query().Get("code"), f.d.secret) {
		fail(w, "unauthenticated", "this login link is not of this demonstration; open the one that it has printed")
		return
	}
	if r.Method == http.MethodHead { // a preview
		w.WriteHeader(http.StatusOK)
		return
	}
	for _, s := range f.order(r) {
		if _, _, ok := s.door.enter(s); !ok {
			continue
		}
		s.mu.Lock()
		mesh := s.life.mesh
		s.mu.Unlock()
		if mesh == nil { // another life has begun
			continue
		}
		code, err := mesh.LoginCode()
		if err != nil {
			continue
		}
		http.SetCookie(w, &http.Cookie{Name: cookieName, Value: f.d.secret, Path: "/api/demo/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		r = r.Clone(context.WithValue(r.Context(), only{}, s))
		r.URL.RawQuery = "code=" + code
		f.proxy.ServeHTTP(&landing{ResponseWriter: w}, r)
		return
	}
	f.failed(w, r, errNoOne)
}

// landing takes whoever has signed in to the page of the demonstration.
type landing struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (l *landing) WriteHeader(status int) {
	if status == http.StatusSeeOther {
		l.Header().Set("Location", "/_demo")
	}
	l.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the proxy flush.
func (l *landing) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// allowed admits whoever has signed in here, or has the Admin token. It asks no silo: all may be down.
func (f *front) allowed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		cookie, err := r.Cookie(cookieName)
		if !same(bearer, f.d.token) && (err != nil || !same(cookie.Value, f.d.secret)) {
			fail(w, "unauthenticated", "open the login link that the demonstration has printed, or send its Admin token")
			return
		}
		next(w, r)
	}
}

// state tells the state again and again.
func (f *front) state(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	every := time.NewTicker(stateEvery)
	defer every.Stop()
	rc := http.NewResponseController(w)
	var told []byte
	for at := time.Now(); ; {
		st := f.d.State()
		text, err := json.Marshal(st)
		if err != nil {
			return
		}
		st.At = time.Time{}
		what, err := json.Marshal(st)
		if err != nil {
			return
		}
		var send []byte
		switch {
		case !bytes.Equal(what, told):
			told, send = what, fmt.Appendf(nil, "event: state\ndata: %s\n\n", text)
		case time.Since(at) > stateBeat:
			send = []byte(": beat\n\n")
		}
		if send != nil {
			at = time.Now()
			if err := errors.Join(rc.SetWriteDeadline(at.Add(stateBeat)), write(w, send), rc.Flush()); err != nil {
				return
			}
		}
		select {
		case <-every.C:
		case <-r.Context().Done():
			return
		case <-f.d.ending:
			return
		}
	}
}

func write(w http.ResponseWriter, text []byte) error {
	_, err := w.Write(text)
	return err
}

// read reads a body; false where it has answered.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		fail(w, "unsupported_media_type", "send application/json")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		fail(w, "invalid_json", err.Error())
		return false
	}
	return true
}

// act does something to a silo.
func (f *front) act(w http.ResponseWriter, r *http.Request) {
	s := f.d.find(r.PathValue("name"))
	if s == nil {
		fail(w, "not_found", fmt.Sprintf("there is no silo '%s'; they are s1, s2 and s3", r.PathValue("name")))
		return
	}
	var want struct {
		Action string `json:"action"`
	}
	if !read(w, r, &want) {
		return
	}
	if err := f.d.Act(s.name, want.Action); err != nil {
		var state *StateError
		if errors.As(err, &state) {
			(&httpapi.Problem{Code: "conflict", Detail: err.Error(), Members: map[string]any{"state": state.State}}).Write(w)
			return
		}
		fail(w, "bad_request", err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Act does something to a silo: kill, freeze, thaw, restart, leave, cut or heal. A restart goes on in the
// background.
func (d *Demo) Act(name, action string) error {
	s := d.find(name)
	if s == nil {
		return fmt.Errorf("there is no silo '%s'", name)
	}
	var err error
	switch action {
	case "kill":
		err = s.kill()
	case "freeze":
		err = s.freeze()
	case "thaw":
		err = s.thaw()
	case "restart":
		err = s.restart()
	case "leave":
		err = s.leave()
	case "cut", "heal":
		for _, other := range d.silos {
			if other != s {
				d.cut(s.name, other.name, action == "cut")
			}
		}
	default:
		return fmt.Errorf("'%s' is none of kill, freeze, thaw, restart, leave, cut and heal", action)
	}
	if err != nil {
		return err
	}
	d.events.add(Event{Silo: name, Kind: "action", Level: "info", Text: action})
	return nil
}

// link cuts or heals one link.
func (f *front) link(w http.ResponseWriter, r *http.Request) {
	var want struct {
		A   string `json:"a"`
		B   string `json:"b"`
		Cut bool   `json:"cut"`
	}
	if !read(w, r, &want) {
		return
	}
	if want.A == want.B || f.d.find(want.A) == nil || f.d.find(want.B) == nil {
		fail(w, "bad_request", "a and b are two of s1, s2 and s3")
		return
	}
	f.d.cut(want.A, want.B, want.Cut)
	text := "heal "
	if want.Cut {
		text = "cut "
	}
	f.d.events.add(Event{Kind: "action", Level: "info", Text: text + want.A + " – " + want.B})
	w.WriteHeader(http.StatusNoContent)
}

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// watchNode streams one node.
func (s *Server) watchNode(w http.ResponseWriter, r *http.Request) error {
	path, err := nodePath(r, "/api/watch/")
	if err != nil {
		return err
	}
	after := resumedFrom(r.Header.Get("Last-Event-ID"))
	err = s.openStream(w, r, []subscription{s.nodeEvents(path, after, "")}, true, func(end ended) event {
		return lastEvent(problemOf(missing(path, end.err)))
	})
	return missing(path, err)
}

// resumedFrom reads the id of an event: a version, or one with a dot and the stamp of its row. Anything else is an id of
// another stream, and is answered with a full.
func resumedFrom(id string) Held {
	version, stamp, stamped := strings.Cut(id, ".")
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != version { // "+4" and "04" are no ids of ours
		return Held{}
	}
	if stamped {
		if at, err := strconv.ParseInt(stamp, 36, 64); err != nil || strconv.FormatInt(at, 36) != stamp {
			return Held{}
		}
	}
	return Held{Version: n, Stamp: stamp}
}

// eventID names the row that a frame leads to; [resumedFrom] reads it.
func eventID(f Frame) string {
	id := strconv.FormatInt(f.Version, 10)
	if f.Stamp != "" {
		id += "." + f.Stamp
	}
	return id
}

// nodeEvents follows a node. Sub is the beginning of each data object: `"sub":3,` or nothing.
func (s *Server) nodeEvents(path node.Path, after Held, sub string) subscription {
	return func(ctx context.Context, turn Turn, out func(event) error) error {
		return s.Watcher.Watch(ctx, path, after, turn, func(f Frame) error {
			ev, err := frameEvent(f, sub)
			if err != nil {
				return err
			}
			if sub != "" {
				ev.id = "" // one connection, several counts: an id would say nothing
			}
			return out(ev)
		})
	}
}

// frameEvent translates one frame; the event without a name says only that there is nothing to say.
func frameEvent(f Frame, sub string) (event, error) {
	data := append([]byte{'{'}, sub...)
	data = strconv.AppendInt(append(data, `"version":`...), f.Version, 10)
	if f.Reset {
		data = append(data, `,"reset":true`...)
	}
	switch f.Kind {
	case Full:
		data = append(f.Node.AppendJSON(append(data, `,"node":`...)), '}')
		return event{name: "full", id: eventID(f), data: data}, nil
	case Patch:
		data = strconv.AppendInt(append(data, `,"basedOn":`...), f.BasedOn, 10)
		data = append(append(data, `,"patch":`...), f.Patch.String()...)
		return event{name: "patch", id: eventID(f), data: append(data, '}')}, nil
	case Deleted:
		return event{name: "deleted", id: eventID(f), data: append(data, '}')}, nil
	case Current:
		return event{}, nil
	}
	return event{}, fmt.Errorf("a frame of kind %d", f.Kind)
}

const (
	// mostSubscriptions bounds one /api/live connection.
	mostSubscriptions = 512
)

// live streams several things on one connection. A subscription that can not be read ends alone.
func (s *Server) live(w http.ResponseWriter, r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem("bad_request", "the query string is not percent-encoded properly")
	}
	nodes, children, queries := q["node"], q["children"], q["query"]
	count := len(nodes) + len(children) + len(queries)
	switch {
	case count == 0:
		return problem("bad_request", "name at least one node, children or query")
	case count > mostSubscriptions:
		return problem("bad_request", fmt.Sprintf("%d subscriptions; one connection takes %d", count, mostSubscriptions))
	}
	subs := make([]subscription, 0, count)
	paths := make([]node.Path, count)
	for _, text := range nodes {
		sub := subPrefix(len(subs))
		path, err := node.ParsePath(text)
		if err != nil {
			subs = append(subs, failing(err))
			continue
		}
		paths[len(subs)] = path
		subs = append(subs, s.nodeEvents(path, Held{}, sub))
	}
	for _, text := range children {
		var path node.Path
		if text != "" {
			if path, err = node.ParsePath(text); err != nil {
				subs = append(subs, failing(err))
				continue
			}
		}
		paths[len(subs)] = path
		subs = append(subs, s.childrenEvents(path, len(subs)))
	}
	for _, text := range queries {
		parsed, err := query.Parse(text)
		if err != nil {
			subs = append(subs, failing(err))
			continue
		}
		subs = append(subs, s.resultEvents(parsed, text, len(subs)))
	}
	return s.openStream(w, r, subs, false, func(end ended) event {
		err := end.err
		if paths[end.sub] != "" {
			err = missing(paths[end.sub], err)
		}
		return event{name: "sub-end", data: problemText(problemOf(err).with("sub", end.sub))}
	})
}

func subPrefix(sub int) string { return fmt.Sprintf(`"sub":%d,`, sub) }

func failing(err error) subscription {
	return func(context.Context, Turn, func(event) error) error { return err }
}

// childrenEvents follows the children of a path, as whole replacements.
func (s *Server) childrenEvents(path node.Path, sub int) subscription {
	return func(ctx context.Context, turn Turn, out func(event) error) error {
		return s.Watcher.WatchChildren(ctx, path, turn, func(entries []store.Entry) error {
			data, err := json.Marshal(map[string]any{"sub": sub, "path": path, "children": childrenOf(entries)})
			if err != nil {
				return err
			}
			return out(event{name: "children", data: data})
		})
	}
}

// resultEvents follows a query, as whole replacements.
func (s *Server) resultEvents(q query.Query, text string, sub int) subscription {
	return func(ctx context.Context, turn Turn, out func(event) error) error {
		quoted, err := json.Marshal(text)
		if err != nil {
			return err
		}
		return s.Watcher.WatchQuery(ctx, q, turn, func(nodes []node.Node, truncated bool) error {
			data := append(append(append([]byte{'{'}, subPrefix(sub)...), `"query":`...), quoted...)
			return out(event{name: "result", data: resultText(append(data, ','), nodes, truncated)})
		})
	}
}

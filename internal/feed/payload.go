package feed

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// PayloadError says that a notification is none that the feed understands. It is skipped (data.md §2.3).
type PayloadError struct {
	Payload string // at most 200 bytes of it
	Err     error
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("a notification %q names no node: %v", e.Payload, e.Err)
}

// Unwrap returns why.
func (e *PayloadError) Unwrap() error { return e.Err }

// ParsePayload reads what a writer that is not ours notifies: JSON with path, op, node_type and version, of
// which all but the path may be missing (CF-8), or a path and nothing else. Members that it does not know, such
// as an entity in a form private to its writer, are passed over (CF-10). The errors are *[PayloadError].
func ParsePayload(payload string) (Invalidation, error) {
	fields := struct {
		Path     string `json:"path"`
		Op       string `json:"op"`
		NodeType string `json:"node_type"`
		Version  int64  `json:"version"`
	}{Path: payload}
	if strings.HasPrefix(payload, "{") {
		fields.Path = ""
		if err := json.Unmarshal([]byte(payload), &fields); err != nil {
			return Invalidation{}, payloadError(payload, err)
		}
	}
	path, err := node.ParsePath(fields.Path)
	if err != nil {
		return Invalidation{}, payloadError(payload, err)
	}
	i := Invalidation{Path: path, Kind: store.Updated, NodeType: fields.NodeType, Version: max(fields.Version, 0)}
	switch strings.ToUpper(fields.Op) {
	case "INSERT", "I":
		i.Kind = store.Created
	case "DELETE", "D":
		i.Kind = store.Deleted
	}
	return i, nil
}

func payloadError(payload string, err error) error {
	return &PayloadError{Payload: strings.ToValidUTF8(payload[:min(len(payload), 200)], ""), Err: err}
}

package client

import (
	"bytes"
	"encoding/json"
)

// merge applies an RFC 7396 merge patch to JSON text. Numbers and other values keep their text.
func merge(target, patch json.RawMessage) (json.RawMessage, error) {
	if !isObject(patch) {
		return patch, nil
	}
	var changes map[string]json.RawMessage
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if isObject(target) {
		if err := json.Unmarshal(target, &members); err != nil {
			return nil, err
		}
	}
	for name, change := range changes {
		if string(bytes.TrimSpace(change)) == "null" {
			delete(members, name)
			continue
		}
		merged, err := merge(members[name], change)
		if err != nil {
			return nil, err
		}
		members[name] = merged
	}
	return json.Marshal(members)
}

func isObject(text json.RawMessage) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[0] == '{'
}

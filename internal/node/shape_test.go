package node_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

// bad input: a value of another kind
// What is refused is told in the terms of JSON, with the place of it.
func TestAValueOfAnotherKindIsToldInTheTermsOfJSON(t *testing.T) {
	type item struct {
		Role  string          `json:"role"`
		Count int8            `json:"count"`
		On    *bool           `json:"on"`
		Of    map[string]bool `json:"of"`
		Rate  float64         `json:"rate"`
	}
	for text, want := range map[string]string{
		`[]`:                                 "it is a list, and not an object",
		`"x"`:                                "it is a text, and not an object",
		`{"roles":{}}`:                       "'roles' is an object, and not a list",
		`{"roles":[{"role":5}]}`:             "'roles.role' is a number, and not a text",
		`{"roles":[{"count":1.5}]}`:          "'roles.count' is a number (1.5), and not a whole number in range",
		`{"roles":[{"count":500}]}`:          "'roles.count' is a number (500), and not a whole number in range",
		`{"roles":[{"on":"yes"}]}`:           "'roles.on' is a text, and not true or false",
		`{"roles":[{"of":[true]}]}`:          "'roles.of' is a list, and not an object",
		`{"roles":[{"rate":true}]}`:          "'roles.rate' is true or false, and not a number",
		`{"roles":[{"role":"r","on":true}]}`: "", // the control
	} {
		var v struct {
			Roles []item `json:"roles"`
		}
		err := node.RawContent(text).Decode(&v)
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || err.Error() != want || strings.Contains(err.Error(), "Go") || !errors.As(err, new(*json.UnmarshalTypeError)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := errors.New("another"); node.Shape(err) != err { //nolint:errorlint // the same one
		t.Error("another error is changed")
	}
}

package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/client"
)

// hostile are texts as a file or a server may have them, and what is shown.
var hostile = map[string]string{
	"esc/\x1b[31mRED\x07.md":        `esc/\x1b[31mRED\x07.md`,
	"two\nlines":                    `two\nlines`,
	"C1 \u009b2J":                   `C1 \x9b2J`,
	"reversed \u202egpj.exe":        `reversed \u202egpj.exe`,
	"unseen \u200b\ufeff\U000e0041": `unseen \u200b\ufeff\U000e0041`,
	"line \u2028end":                `line \u2028end`,
	"bytes \xff":                    `bytes \xff`,
	"words: naïve 日本 می\u200cخواهم 👩\u200d🔬": "words: naïve 日本 می\u200cخواهم 👩\u200d🔬", // the control
}

// edge §4
// No name and no text of a server or a disk reaches the terminal as a command, a line or an order of its own.
func TestWhatIsShownIsNoCommandToTheTerminal(t *testing.T) {
	for text, want := range hostile {
		if got := plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		var shown strings.Builder
		p := progress{w: &shown}
		a := activity{Status: "Running", Messages: []struct {
			Level string `json:"level"`
			Text  string `json:"text"`
			About string `json:"about"`
		}{{"error", text, text}}}
		p.update(a)
		if got := shown.String(); got != "error: "+want+": "+want+"\n" {
			t.Errorf("a message of an import: %q", got)
		}
		shown.Reset()
		explain(&shown, &client.Error{Status: http.StatusBadRequest, Detail: text})
		if got := shown.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("an answer: %q", got)
		}
		shown.Reset()
		explain(&shown, errors.New("'"+text+"': no such file"))
		if got := strings.TrimSuffix(shown.String(), "\n"); strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && obeyed(r) }) {
			t.Errorf("an error: %q", got)
		}
	}
}

// edge §4
// JSON for a terminal is the same value for a program.
func TestPrintedJSONIsTheSameValueWithoutCommands(t *testing.T) {
	for text := range hostile {
		value := map[string]any{"name": strings.ToValidUTF8(text, "?")}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		for name, print := range map[string]func(std) error{"a value": func(s std) error { return s.print(json.RawMessage(raw)) }, "a line": func(s std) error { return s.line(json.RawMessage(raw)) }} {
			var out strings.Builder
			if err := print(std{out: &out}); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && obeyed(r) }) {
				t.Errorf("%s: %q", name, got)
			}
			var back map[string]any
			if err := json.Unmarshal([]byte(got), &back); err != nil || !cmp.Equal(back, value) {
				t.Errorf("%s: %q %v", name, got, err)
			}
		}
	}
}

func FuzzPrintedJSONIsTheSameValue(f *testing.F) {
	for text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Skip()
		}
		var want, got string
		if err := errors.Join(json.Unmarshal(raw, &want), json.Unmarshal(plainJSON(raw), &got)); err != nil || got != want {
			t.Fatalf("%q %q %v", want, got, err)
		}
	})
}

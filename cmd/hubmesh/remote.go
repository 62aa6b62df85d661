package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// remote are the flags of every verb that talks to a server.
type remote struct {
	Server    string `help:"Address of the server." env:"HUBMESH_SERVER" default:"http://127.0.0.1:8080" placeholder:"URL"`
	TokenFile folder `help:"File that holds the token. Without it HUBMESH_TOKEN is the token itself." placeholder:"FILE"`
}

// client connects the flags to a server.
func (r remote) client() (*client.Client, error) {
	token := os.Getenv("HUBMESH_TOKEN")
	if r.TokenFile != "" {
		text, err := os.ReadFile(string(r.TokenFile))
		if err != nil {
			return nil, usage(fmt.Errorf("--token-file: %w", err))
		}
		if token = string(text); strings.TrimSpace(token) == "" {
			return nil, usage(fmt.Errorf("--token-file: '%s' is empty", r.TokenFile))
		}
	}
	token = strings.TrimSpace(token)
	if strings.ContainsAny(token, " \t\r\n") {
		return nil, usage(errors.New("the token file holds more than a token"))
	}
	c, err := client.New(client.Options{Server: r.Server, Token: token})
	if err != nil {
		return nil, usage(err)
	}
	return c, nil
}

// giveUp is how long a verb that follows a node waits for a server that has gone.
const giveUp = 5 * time.Minute

// following tells of each lost connection, and ends when the server does not come back.
func following(s std) client.WatchOptions {
	lost := false
	return client.WatchOptions{
		GiveUp: giveUp,
		Lost: func(err error, wait time.Duration) {
			lost = true
			fmt.Fprintf(s.err, "\nhubmesh: the connection was lost: %v; waiting for the server, trying again in %v\n", plain(err.Error()), wait.Round(time.Second/10))
		},
		Opened: func() {
			if lost {
				fmt.Fprintln(s.err, "hubmesh: connected again")
			}
			lost = false
		},
	}
}

// condition are the flags of a write that depends on what is stored.
type condition struct {
	IfVersion *int64 `help:"Write only if this version is stored." placeholder:"N"`
}

// when is the condition that was given. One that no node can meet is refused, as it must not become none.
func (c condition) when() (client.If, error) {
	if c.IfVersion == nil {
		return client.If{}, nil
	}
	if *c.IfVersion < 1 {
		return client.If{}, usage(fmt.Errorf("--if-version is %d; the first version of a node is 1", *c.IfVersion))
	}
	return client.If{Version: *c.IfVersion}, nil
}

// input reads a JSON document: the text itself, "@FILE", or "-" for the standard input.
func (s std) input(text string) ([]byte, error) {
	var doc []byte
	var err error
	switch {
	case text == "-":
		doc, err = io.ReadAll(s.in)
	case strings.HasPrefix(text, "@"):
		doc, err = os.ReadFile(text[1:])
	default:
		doc = []byte(text)
	}
	if err != nil {
		return nil, usage(err)
	}
	if !json.Valid(doc) {
		return nil, usage(fmt.Errorf("this is no JSON: %.60q; pass JSON, @FILE, or - for the standard input", doc))
	}
	return doc, nil
}

// print writes one result as JSON for people and programs.
func (s std) print(v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err = s.out.Write(plainJSON(indented.Bytes()))
	return err
}

// line writes one of many results on one line.
func (s std) line(v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return err
	}
	compact.WriteByte('\n')
	_, err = s.out.Write(plainJSON(compact.Bytes()))
	return err
}

// encode marshals without the escapes that are meant for text inside of HTML.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return text.Bytes(), err
}

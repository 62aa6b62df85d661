package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

type benchCmd struct {
	Gen benchGenCmd `cmd:"" help:"Write a folder of generated node files, to import and to measure with."`
}

type benchGenCmd struct {
	Dir   string `arg:"" help:"Folder to write into; it is made and must be empty." type:"path"`
	Nodes int    `help:"Number of nodes." default:"20000"`
	Bytes int    `help:"Bytes of a node file, about." default:"1500"`
	Space string `help:"Name of the space." default:"bench"`
}

// genPerFolder is how many nodes stand in one folder.
const genPerFolder = 500

// Run writes the files. The same numbers give the same bytes.
func (c *benchGenCmd) Run(s std) error {
	if c.Nodes < 1 || c.Bytes < 200 {
		return usage(fmt.Errorf("at least one node, of at least 200 bytes"))
	}
	if list, err := os.ReadDir(c.Dir); err == nil && len(list) > 0 {
		return usage(fmt.Errorf("'%s' is not empty", c.Dir))
	}
	words := []string{"mesh", "hub", "node", "silo", "claim", "turn", "gate", "frame", "patch", "view", "slot", "lane"}
	state := uint64(42)
	next := func() uint64 { // a small generator of its own: the bytes never depend on a library's version
		state = state*6364136223846793005 + 1442695040888963407
		return state >> 33
	}
	for i := range c.Nodes {
		dir := filepath.Join(c.Dir, c.Space, fmt.Sprintf("d%04d", i/genPerFolder))
		if i%genPerFolder == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		text := make([]byte, 0, c.Bytes)
		for len(text) < c.Bytes-220 {
			text = append(append(text, words[next()%uint64(len(words))]...), ' ')
		}
		node := map[string]any{"name": fmt.Sprintf("Node %d", i), "nodeType": "Markdown", "description": "Generated", "content": map[string]any{
			"$type": "Markdown", "number": i, "group": words[next()%uint64(len(words))], "markdown": string(text)}}
		b, err := json.Marshal(node)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("n%06d.json", i)), b, 0o644); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(s.out, "{\"dir\":%q,\"nodes\":%d}\n", c.Dir, c.Nodes)
	return err
}

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// docs/cli.md is written by hand; what it lacks is told here.
func TestThePageOfTheCommandLineNamesEveryVerbAndItsFlags(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	operating, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&root{}, kong.Name("hubmesh"))
	if err != nil {
		t.Fatal(err)
	}
	leaves := parser.Model.Leaves(true)
	if len(leaves) < 12 {
		t.Errorf("only %d verbs", len(leaves))
	}
	for _, leaf := range leaves {
		verb := strings.TrimPrefix(leaf.FullPath(), "hubmesh ")
		text := string(page)
		if verb == "serve" {
			text = string(operating)
		}
		if !strings.Contains(text, "`"+verb+" ") && !strings.Contains(text, "`"+verb+"`") && !strings.Contains(text, "hubmesh "+verb+" ") {
			t.Errorf("the page lacks the verb `%s`", verb)
		}
		for _, flag := range leaf.Flags {
			if !flag.Hidden && flag.Name != "help" && !strings.Contains(text, "--"+flag.Name) {
				t.Errorf("the page lacks --%s of `%s`", flag.Name, verb)
			}
		}
	}
}

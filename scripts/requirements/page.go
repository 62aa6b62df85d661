package main

import (
	"fmt"
	"path"
	"sort"
	"strings"
)

const head = `# Requirements and their tests

Made by ` + "`make requirements`" + ` from the list in ` + "`scripts/requirements/rules.txt`" + ` and from the comments above the
tests; do not edit. The ids are those of the behavioural specification that hubmesh follows: messaging
(bare invariants), data and edge.

`

// page writes the whole of docs/requirements.md.
func page(rules []rule, proofs []proof) string {
	tests := byRule(proofs)
	var out strings.Builder
	out.WriteString(head)
	proven := 0
	listed := map[string]bool{}
	for _, r := range rules {
		listed[r.id] = true
		if len(tests[r.id]) > 0 {
			proven++
		}
	}
	fmt.Fprintf(&out, "%d of %d rules have a test.\n", proven, len(rules))
	group := ""
	for _, r := range rules {
		if r.group != group {
			group = r.group
			fmt.Fprintf(&out, "\n## %s\n\n| rule | what it says | step | tests |\n|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", cell(r.id), cell(r.text), r.step, cellOf(tests[r.id]))
	}
	var others []string
	for id := range tests {
		if !listed[id] {
			others = append(others, id)
		}
	}
	sort.Slice(others, func(i, j int) bool { return natural(others[i]) < natural(others[j]) })
	if len(others) > 0 {
		out.WriteString("\n## Cited beyond the list\n\n| rule | tests |\n|---|---|\n")
		for _, id := range others {
			fmt.Fprintf(&out, "| %s | %s |\n", cell(id), cellOf(tests[id]))
		}
	}
	return out.String()
}

func cellOf(proofs []proof) string {
	if len(proofs) == 0 {
		return "no test yet"
	}
	lines := make([]string, len(proofs))
	for i, p := range proofs {
		lines[i] = fmt.Sprintf("[%s](../%s) %s", path.Base(path.Dir(p.file)), p.file, cell(p.test))
	}
	return strings.Join(lines, "<br>")
}

// cell keeps text from ending its table cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

// natural makes numbers sort by value: each is padded with zeros.
func natural(id string) string {
	return numbers.ReplaceAllStringFunc(id, func(digits string) string {
		return fmt.Sprintf("%05d", atoi(digits))
	})
}

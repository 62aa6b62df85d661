package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed rules.txt
var rulesText string

// rule is one line of rules.txt.
type rule struct {
	id    string
	step  string
	text  string
	group string
}

// parseRules reads lines of the form `id | step | sentence`; `# Heading` starts a group, `//` is a
// remark. An id stands once.
func parseRules(text string) ([]rule, error) {
	var rules []rule
	group := ""
	seen := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || strings.HasPrefix(line, "//"):
			continue
		case strings.HasPrefix(line, "# "):
			group = strings.TrimPrefix(line, "# ")
			continue
		}
		parts := strings.SplitN(line, " | ", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("rules.txt:%d: want `id | step | sentence`, not %q", number, line)
		}
		r := rule{id: parts[0], step: parts[1], text: parts[2], group: group}
		if seen[r.id] {
			return nil, fmt.Errorf("rules.txt:%d: %s stands twice", number, r.id)
		}
		if cited := citations(r.id); len(cited) != 1 || cited[0] != r.id {
			return nil, fmt.Errorf("rules.txt:%d: a test could not cite %q: it reads as %q", number, r.id, cited)
		}
		seen[r.id] = true
		rules = append(rules, r)
	}
	return rules, lines.Err()
}

func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n > 9999 {
		return 0 // no rule has such a number
	}
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }

package main

import (
	"regexp"
	"strings"
)

// citation finds one reference to a rule, or to several of one kind, in the text of a comment.
var citation = regexp.MustCompile(
	`bad input: [^.,;)\n]+` +
		`|\b(?:(?:messaging|data|edge) )?(?:invariant|fault|decision)s? \d+(?:(?:, | and |, and |–|-)\d+)*` +
		`|\b(?:messaging|data|edge|hub|storage|protocol)(?:\.md)? §\d+(?:\.\d+)*` +
		`|\b(?:CR|RB|DG|CF|SY|Q|IN|ES)-\d+\b` +
		`|\bAC-R\d+\b` +
		`|\b[ABC]-\d+\b` +
		`|\bC\d+b?\b`)

var numbers = regexp.MustCompile(`(\d+)(–|-)?`)

// citations returns the rules that a comment cites, in the form of rules.txt and in the order of the
// text.
func citations(comment string) []string {
	var rules []string
	for line := range strings.SplitSeq(comment, "\n") {
		document := "" // of the last section cited on the line: "data §2.1, invariant 46" is an invariant of data
		for _, found := range citation.FindAllString(line, -1) {
			if name, _, section := strings.Cut(strings.Replace(found, ".md", "", 1), " §"); section {
				document = name
			} else if strings.HasPrefix(found, "invariant") && (document == "data" || document == "edge") {
				found = document + " " + found
			}
			rules = append(rules, spread(found)...)
		}
	}
	return rules
}

// spread turns "invariants 15, 16 and 18–20" into one rule a number; anything else is one rule.
func spread(found string) []string {
	for _, kind := range []string{"invariant", "fault", "decision"} {
		before, after, ok := strings.Cut(found, kind)
		if !ok || strings.HasPrefix(found, "bad input:") {
			continue
		}
		scope := strings.TrimPrefix(before, "messaging ")
		var rules []string
		from := 0
		for _, m := range numbers.FindAllStringSubmatch(after, -1) {
			n := atoi(m[1])
			if from == 0 {
				from = n
			}
			if m[2] != "" {
				continue // the start of a range
			}
			for ; from <= n; from++ {
				rules = append(rules, scope+kind+" "+itoa(from))
			}
			from = 0
		}
		return rules
	}
	found = strings.Replace(found, ".md §", " §", 1)
	return []string{strings.TrimSpace(found)}
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// report writes the page about performance from the results that are there.
func report(results, page string) error {
	var b strings.Builder
	b.WriteString(`# Performance

Made by ` + "`make bench`" + ` from ` + "`bench/results`" + `; do not edit. Subjects are interleaved in one run, with the limit beside
them. The machines are shared and noisy: ratios are judged, absolute times are shown. A goal that was missed says so;
the reasons are in [What was missed](decisions/performance-misses.md).
`)
	for _, s := range scenarios() {
		text, err := os.ReadFile(filepath.Join(results, s.name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		var r Result
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s, in %s. %s, %s, %d processors, %s, %d rounds.\n\n", r.Scenario, upper(s.help), r.Unit, r.Environment.Go, r.Environment.OS,
			r.Environment.CPUs, r.Environment.At.Format("2006-01-02"), r.Environment.Rounds)
		if len(r.Subjects) > 0 {
			b.WriteString("| subject | median | p10 | p90 | runs |\n|---|---|---|---|---|\n")
			for _, name := range sorted(r.Subjects) {
				v := r.Subjects[name]
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %d |\n", name, figure(v.Median), figure(v.P10), figure(v.P90), v.Runs)
			}
			b.WriteString("\n")
		}
		if len(r.Goals) > 0 {
			b.WriteString("| goal | wanted | got | |\n|---|---|---|---|\n")
			for _, g := range r.Goals {
				verdict := "met"
				if !g.Met {
					verdict = "**missed**"
				}
				fmt.Fprintf(&b, "| %s | %s %g | %s | %s |\n", g.Metric, map[string]string{"<=": "≤", ">=": "≥"}[g.Op], g.Value, figure(g.Got), verdict)
			}
		}
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "\n%s.\n", upper(strings.TrimSuffix(n, ".")))
		}
	}
	b.WriteString("\n## Again\n\n`make bench` runs everything and writes this page; `make bench ARGS='-scenario ask,writes -rounds 5'` a part.\n")
	return os.WriteFile(page, []byte(b.String()), 0o644)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// figure is a number with the digits that mean something.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

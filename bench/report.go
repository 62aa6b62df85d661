package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const reportHead = `# Performance

Made from ` + "`bench/results/*.json`" + ` by ` + "`go -C bench run . -report ../docs/performance.md`" + `. Measure again with
` + "`make bench`" + `, or one scenario with ` + "`go -C bench run . -scenario ask -rounds 9`" + `.

Subjects are interleaved in one run, the limit included: ratios (medians of pairs, round by round) are what is
judged, absolute figures are of the machine and of what else it was doing. A goal that is missed is shown as missed.

`

// writeReport writes a page with a table for each scenario that has a result.
func writeReport(results, page string) error {
	var out strings.Builder
	out.WriteString(reportHead)
	var list []Result
	missed, goals := 0, 0
	for _, s := range scenarios() {
		text, err := os.ReadFile(filepath.Join(results, s.name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		var r Result
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return err
		}
		list = append(list, r)
		for _, g := range r.Goals {
			goals++
			if !g.Met {
				missed++
			}
		}
	}
	fmt.Fprintf(&out, "%d of %d goals are met.\n", goals-missed, goals)
	for i := range list {
		for _, s := range scenarios() {
			if s.name == list[i].Scenario {
				list[i].page(&out, s.help)
			}
		}
	}
	return os.WriteFile(page, []byte(out.String()), 0o644)
}

func (r *Result) page(out *strings.Builder, help string) {
	e := r.Environment
	fmt.Fprintf(out, "\n## %s: %s\n\n%s, %s, %d processors, %d rounds, %s. Unit: %s, where a subject does not name its own.\n",
		r.Scenario, help, e.Go, e.OS, e.CPUs, e.Rounds, e.At.Format("2006-01-02 15:04"), r.Unit)
	if len(r.Goals) > 0 {
		out.WriteString("\n| goal | must be | is | |\n|---|---|---|---|\n")
		for _, g := range r.Goals {
			verdict := "met"
			if !g.Met {
				verdict = "**missed**"
			}
			fmt.Fprintf(out, "| %s | %s %g | %.3g | %s |\n", g.Metric, sign(g.Op), g.Value, g.Got, verdict)
		}
	}
	if len(r.Subjects) > 0 {
		out.WriteString("\n| subject | median | p10 – p90 | runs |\n|---|---|---|---|\n")
		for _, name := range sorted(r.Subjects) {
			s := r.Subjects[name]
			fmt.Fprintf(out, "| %s | %s | %s – %s | %d |\n", name, figure(s.Median), figure(s.P10), figure(s.P90), s.Runs)
		}
	}
	judged := map[string]bool{}
	for _, g := range r.Goals {
		judged[g.Metric] = true
	}
	var more []string
	for _, m := range []map[string]float64{r.Ratios, r.Metrics} {
		for _, name := range sorted(m) {
			if !judged[name] {
				more = append(more, fmt.Sprintf("%s %s", name, figure(m[name])))
			}
		}
	}
	if len(more) > 0 {
		fmt.Fprintf(out, "\nBesides: %s.\n", strings.Join(more, "; "))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "\n%s.\n", strings.TrimRight(strings.ToUpper(n[:1])+n[1:], "."))
	}
}

// figure is a number with about three digits.
func figure(v float64) string {
	if v >= 100 || v <= -100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func sign(op string) string {
	return map[string]string{">=": "≥", "<=": "≤"}[op]
}

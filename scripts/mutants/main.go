package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	seeds := flag.Int("seeds", 2000, "seeds within which each mutant has to be noticed")
	list := flag.Bool("list", false, "only list the mutants")
	flag.Parse()
	if *list {
		for _, m := range mutants {
			fmt.Printf("%-30s %s\n", m.name, m.rule)
		}
		return
	}
	survived := 0
	for _, m := range mutants {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), m.name) {
			continue
		}
		kill, err := try(m, *seeds)
		switch {
		case err != nil:
			fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", m.name, err)
			os.Exit(2)
		case kill == "":
			survived++
			fmt.Printf("SURVIVED  %-30s %d seeds\n", m.name, *seeds)
		default:
			fmt.Printf("killed    %-30s %s\n", m.name, kill)
		}
	}
	if survived > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d survived\n", survived)
		os.Exit(1)
	}
}

var violation = regexp.MustCompile(`seed \d+: [^\n]*`)

// try runs the simulation on one mutant and returns the first violation, or "".
func try(m mutant, seeds int) (string, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // in the temporary directory, which is cleaned anyway
	texts := map[string]string{}
	for _, e := range m.edits {
		text, ok := texts[e.file]
		if !ok {
			b, err := os.ReadFile(e.file)
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		if strings.Count(text, e.old) != 1 {
			return "", fmt.Errorf("%s holds %q %d times, not once", e.file, e.old, strings.Count(text, e.old))
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range texts {
		at, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[at] = to
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return "", err
	}
	run := exec.Command("go", "test", "-vet=off", "-count=1", "-timeout=30m", "-overlay", file, "./meshtest/sim", "-run", "^TestTheProtocolHolds$", "-seeds", fmt.Sprint(seeds), "-first")
	out, err := run.CombinedOutput()
	if err == nil {
		return "", nil
	}
	if found := violation.FindString(string(out)); found != "" {
		return found, nil
	}
	return "", errors.New(string(out))
}

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	c, err := read(os.Args[1:], os.Stderr)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(2)
		}
		return
	}
	if c.list {
		for _, m := range c.mutants {
			fmt.Printf("%-30s %s\n", m.name, m.rule)
		}
		return
	}
	survived := 0
	for _, m := range c.mutants {
		kill, err := try(m, c.seeds)
		switch {
		case err != nil:
			fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", m.name, err)
			os.Exit(2)
		case kill == "":
			survived++
			by := fmt.Sprint(c.seeds, " seeds")
			if m.test.name != "" {
				by = m.test.name
			}
			fmt.Printf("SURVIVED  %-30s %s\n", m.name, by)
		default:
			fmt.Printf("killed    %-30s %s\n", m.name, kill)
		}
	}
	if survived > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d survived\n", survived)
		os.Exit(1)
	}
}

// command is what the arguments ask for.
type command struct {
	seeds   int
	list    bool
	mutants []mutant // all of them where none is named
}

// read reads the arguments: flags and names in any order. A name that no mutant has is an error that lists
// those there are.
func read(args []string, usage io.Writer) (c command, err error) {
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(usage)
	f.IntVar(&c.seeds, "seeds", 2000, "seeds within which each mutant has to be noticed")
	f.BoolVar(&c.list, "list", false, "only list the mutants")
	var names []string
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return c, err
		}
		if args = f.Args(); len(args) > 0 { // flags may stand behind a name
			names, args = append(names, args[0]), args[1:]
		}
	}
	if c.seeds < 1 {
		return c, fmt.Errorf("-seeds %d: at least one", c.seeds)
	}
	var known, unknown []string
	for _, m := range mutants {
		known = append(known, m.name)
		if len(names) == 0 || slices.Contains(names, m.name) {
			c.mutants = append(c.mutants, m)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			unknown = append(unknown, n)
		}
	}
	if len(unknown) > 0 {
		return c, fmt.Errorf("no mutant is called %s; there are\n  %s", strings.Join(unknown, ", "), strings.Join(known, "\n  "))
	}
	return c, nil
}

var violation = regexp.MustCompile(`seed \d+: [^\n]*`)

// try runs the simulation, or the test that the mutant names, on one mutant and returns the first violation, or "".
func try(m mutant, seeds int) (string, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // in the temporary directory, which is cleaned anyway
	texts, err := m.texts(os.DirFS("."))
	if err != nil {
		return "", err
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
	by, kill := m.noticed(seeds)
	out, err := exec.Command("go", append([]string{"test", "-vet=off", "-count=1", "-timeout=30m", "-overlay", file}, by...)...).CombinedOutput()
	if err == nil {
		return "", nil
	}
	if found := kill.FindString(string(out)); found != "" {
		return found, nil
	}
	return "", errors.New(string(out))
}

// noticed is what has to notice the mutant, as arguments of go test, and how a kill looks in its output.
func (m mutant) noticed(seeds int) (args []string, kill *regexp.Regexp) {
	if m.test == (test{}) {
		return []string{simPkg, "-run", "^TestTheProtocolHolds$", "-seeds", fmt.Sprint(seeds), "-first"}, violation
	}
	return []string{m.test.pkg, "-run", "^" + m.test.name + "$"}, regexp.MustCompile(`--- FAIL: ` + m.test.name + `\b`)
}

// texts are the files of the mutant below root, with the rule taken out.
func (m mutant) texts(root fs.FS) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range m.edits {
		text, ok := texts[e.file]
		if !ok {
			b, err := fs.ReadFile(root, e.file)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if strings.Count(text, e.old) != 1 {
			return nil, fmt.Errorf("%s holds %q %d times, not once", e.file, e.old, strings.Count(text, e.old))
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return texts, nil
}

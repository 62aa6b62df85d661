package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

var targetLine = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// target is one fuzz function.
type target struct{ pkg, name string }

// targets finds the fuzz functions below root, outside of other modules.
func targets(root fs.FS) ([]target, error) {
	var found []target
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "." {
				return nil
			}
			_, other := fs.Stat(root, path.Join(name, "go.mod"))
			if other == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, m := range targetLine.FindAllSubmatch(text, -1) {
			found = append(found, target{pkg: "./" + path.Dir(name), name: string(m[1])})
		}
		return nil
	})
	return found, err
}

// named keeps the targets of the packages that were named; all of them where none was.
func named(all []target, packages []string) ([]target, error) {
	if len(packages) == 0 {
		return all, nil
	}
	var kept []target
	for _, p := range packages {
		before := len(kept)
		for _, t := range all {
			if t.pkg == "./"+path.Clean(p) {
				kept = append(kept, t)
			}
		}
		if len(kept) == before {
			var known []string
			for _, t := range all {
				known = append(known, t.pkg)
			}
			return nil, fmt.Errorf("%s has no fuzz target; these have: %s", p, strings.Join(slices.Compact(known), " "))
		}
	}
	return kept, nil
}

func main() {
	long := flag.Duration("time", 30*time.Second, "how long each target runs")
	flag.Parse()
	all, err := targets(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(2)
	}
	if all, err = named(all, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(2)
	}
	failed := 0
	for _, t := range all {
		fmt.Printf("== %s %s, %v\n", t.pkg, t.name, *long)
		cmd := exec.Command("go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+long.String(), t.pkg)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			failed++
		}
	}
	if failed > 0 {
		fmt.Fprintf(os.Stderr, "fuzz: %d targets failed\n", failed)
		os.Exit(1)
	}
}

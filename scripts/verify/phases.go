package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// phase is one step of the run.
type phase struct {
	name   string
	groups []string
	needed bool // a failure ends the run
	run    func(context.Context, *runner) error
}

// phases lists the steps in order.
func phases() []phase {
	return []phase{
		{name: "tools", groups: []string{"go", "web", "web-build"}, needed: true, run: ensureTools},
		{name: "format", groups: []string{"quick", "go"}, run: checkFormat},
		{name: "layers", groups: []string{"quick", "go"}, run: command("go", "run", "./scripts/layers")},
		{name: "requirements", groups: []string{"quick", "go"}, run: command("go", "run", "./scripts/requirements", "-check")},
		{name: "vet", groups: []string{"quick", "go"}, run: command("go", "vet", "./...")},
		{name: "lint", groups: []string{"go"}, run: lintIfInstalled},
		{name: "test", groups: []string{"go"}, run: goTests},
		{name: "simulate", groups: []string{"go"}, run: command("go", "test", "./meshtest/sim", "-count=1", "-run", "^TestTheProtocolHolds$", "-seeds", "2000")},
		{name: "client-js", groups: []string{"web"}, run: againstServer(npmTests("client/js"))},
		{name: "page", groups: []string{"web"}, run: npmTests("web")},
		{name: "page-build", groups: []string{"web"}, run: comparePage},
		{name: "page-e2e", groups: []string{"web"}, run: againstServer(pageInBrowser("e2e"))},
		{name: "shared-e2e", groups: []string{"web"}, run: againstTwo(pageInBrowser("e2e-shared"))},
		{name: "demo-e2e", groups: []string{"web"}, run: againstDemo(pageInBrowser("e2e-demo"))},
		{name: "write-page", groups: []string{"web-build"}, run: buildPage},
	}
}

// choose returns the phases that only names, by name or by group.
func choose(all []phase, only string) ([]phase, error) {
	var chosen []phase
	if only == "" {
		for _, p := range all {
			if p.name != "write-page" {
				chosen = append(chosen, p)
			}
		}
		return chosen, nil
	}
	wanted := strings.Split(only, ",")
	for _, p := range all {
		if slices.ContainsFunc(wanted, func(w string) bool { return w == p.name || slices.Contains(p.groups, w) }) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no phase or group is called %q", only)
	}
	return chosen, nil
}

// runner starts programs; the tools phase may put folders ahead in its PATH.
type runner struct {
	env       []string
	installed map[string]bool // folders whose npm packages this run has installed
}

func (r *runner) run(ctx context.Context, dir, program string, args ...string) error {
	path, err := r.look(program)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, r.env, os.Stdout, os.Stderr
	return cmd.Run()
}

// look finds a program in the runner's PATH, which may differ from this process's.
func (r *runner) look(program string) (string, error) {
	for i := len(r.env) - 1; i >= 0; i-- {
		if list, ok := strings.CutPrefix(r.env[i], "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				file := filepath.Join(dir, program)
				if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
					return file, nil
				}
			}
			break
		}
	}
	return exec.LookPath(program)
}

func command(program string, args ...string) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error { return r.run(ctx, ".", program, args...) }
}

func checkFormat(ctx context.Context, r *runner) error {
	var files []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "gofmt", append([]string{"-l"}, files...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gofmt: %w\n%s", err, out)
	}
	if len(out) > 0 {
		return fmt.Errorf("not formatted, run `gofmt -w` on:\n%s", out)
	}
	return nil
}

// lintIfInstalled runs the larger linter where `make lint` has put it: building it takes minutes.
func lintIfInstalled(ctx context.Context, r *runner) error {
	found, err := filepath.Glob(".cache/bin/golangci-lint-v*")
	if err != nil {
		return err
	}
	program := ""
	if len(found) > 0 {
		program = found[len(found)-1]
	} else if program, err = r.look("golangci-lint"); err != nil {
		fmt.Println("golangci-lint is not installed; `make lint` installs and runs it")
		return nil
	}
	return r.run(ctx, ".", program, "run", "./...")
}

// goTests runs every Go test under the race detector. The bench module has peers in its graph and is
// left to `make bench`.
func goTests(ctx context.Context, r *runner) error {
	return r.run(ctx, ".", "go", "test", "-race", "-timeout", "15m", "./...")
}

// hasScript tells whether dir has a package.json with the named script.
func hasScript(dir, script string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	return err == nil && strings.Contains(string(text), `"`+script+`":`)
}

// install brings the npm packages of a folder, once a run.
func install(ctx context.Context, r *runner, dir string) error {
	if r.installed[dir] {
		return nil
	}
	if err := r.run(ctx, dir, "npm", "ci", "--no-fund", "--no-audit", "--loglevel=error"); err != nil {
		return err
	}
	r.installed[dir] = true
	return nil
}

func npmTests(dir string) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		if !hasScript(dir, "test") {
			fmt.Println(dir, "has no tests")
			return nil
		}
		if err := install(ctx, r, dir); err != nil {
			return err
		}
		return r.run(ctx, dir, "npm", "test", "--silent")
	}
}

func pageInBrowser(script string) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		if !hasScript("web", script) {
			fmt.Println("web has no browser tests", script)
			return nil
		}
		if err := install(ctx, r, "web"); err != nil {
			return err
		}
		return r.run(ctx, "web", "npm", "run", "--silent", script)
	}
}

func buildPage(ctx context.Context, r *runner) error {
	if !hasScript("web", "build") {
		return errors.New("web has no build script")
	}
	if err := install(ctx, r, "web"); err != nil {
		return err
	}
	return r.run(ctx, "web", "npm", "run", "--silent", "build")
}

// comparePage builds the page again and compares it with web/dist, which the binary embeds.
func comparePage(ctx context.Context, r *runner) error {
	if !hasScript("web", "build") {
		fmt.Println("web has no build")
		return nil
	}
	before, err := fingerprints("web/dist")
	if err != nil {
		return err
	}
	if err := install(ctx, r, "web"); err != nil {
		return err
	}
	if err := r.run(ctx, "web", "npm", "run", "--silent", "build"); err != nil {
		return err
	}
	after, err := fingerprints("web/dist")
	if err != nil {
		return err
	}
	if changed := differences(before, after); len(changed) > 0 {
		return fmt.Errorf("web/dist is not what web/ builds: commit what was built just now (%s)", strings.Join(changed, ", "))
	}
	return nil
}

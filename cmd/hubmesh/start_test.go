package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bad input: a port in use
// bad input: a locked database
// bad input: a corrupt database
func TestAStartThatCannotSucceedSaysWhyAndWhatToDo(t *testing.T) {
	dir := t.TempDir()
	p := mustStart(t, dir, nil)
	port := strings.TrimPrefix(p.url, "http://")
	for _, c := range []struct {
		name string
		dir  string
		args []string
		env  []string
		want []string
	}{
		{"port in use", t.TempDir(), []string{"--listen", port}, nil, []string{port + " is in use by another process", "--listen"}},
		{"folder in use", dir, nil, nil, []string{"in use by process", "name another data folder"}},
		{"corrupt database", corrupt(t), nil, nil, []string{"hubmesh.db"}},
		{"fault without testing", t.TempDir(), []string{"--fault", "start:a=1s"}, []string{testingEnv + "="}, []string{testingEnv}},
		{"no such folder to import", t.TempDir(), []string{"--import", "/nonexistent-folder"}, nil, []string{"no such folder"}},
	} {
		_, err := start(t, c.dir, c.env, c.args...)
		if err == nil {
			t.Errorf("%s: started", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", c.name, want, err)
			}
		}
	}
	if status, _, _ := p.do("GET", "/alive", "", ""); status != 200 {
		t.Fatal("the first process suffered")
	}
}

// Issue 2, §5: a start that can not succeed makes nothing, and its error is all that it says.
func TestAStartThatCannotSucceedMakesNothingAndSaysOneThing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	silo := []string{"--postgres", "postgres://127.0.0.1:1/none", "--cluster-listen", "127.0.0.1:0", "--cluster-secret-file", file}
	for _, c := range []struct {
		name string
		code int
		want string
		args []string
	}{
		{"node types without a cluster", exitUsage, "--node-types is for a silo", []string{"--node-types", "A"}},
		{"a limit of nothing", exitUsage, "--node-bytes is 0", []string{"--node-bytes", "0"}},
		{"a negative limit", exitUsage, "--history is -1", []string{"--history=-1"}},
		{"an address without a port", exitUsage, "want HOST:PORT", []string{"--listen", "localhost"}},
		{"a port that is none", exitUsage, "want HOST:PORT", []string{"--listen", "127.0.0.1:99999"}},
		{"no folder to import", exitUsage, "'/nonexistent-folder': no such folder", []string{"--import", "/nonexistent-folder"}},
		{"a file to import", exitUsage, "is a file", []string{"--import", file}},
		{"no name to import", exitUsage, "the name is empty", []string{"--import", ""}},
		{"no content", exitUsage, "no such folder", []string{"--content", "/nonexistent-folder"}},
		{"no name for the data", exitUsage, "the name is empty", []string{"--data", ""}},
		{"an empty database", exitUsage, "--postgres, or HUBMESH_POSTGRES, is empty", []string{"--postgres", ""}},
		{"a silo without a database", exitUsage, "needs --postgres", silo[2:]},
		{"a silo without a secret", exitUsage, "needs --cluster-secret-file", silo[:4]},
		{"no file of a secret", exitUsage, "make one with", append(silo[:4:4], "--cluster-secret-file", "/nonexistent-file")},
		{"a short secret", exitUsage, "holds 0 bytes", append(silo[:4:4], "--cluster-secret-file", file)},
		{"a silo's address without a port", exitUsage, "--cluster-listen 'here': want HOST:PORT", append(silo[:2:2], "--cluster-listen", "here", "--cluster-secret-file", file)},
		{"a silo that nobody can dial", exitUsage, "pass --advertise HOST:PORT", append(silo[:2:2], "--cluster-listen", "0.0.0.0:7946", "--cluster-secret-file", file)},
		{"an advertised address of nobody", exitUsage, "names no host", append(silo, "--advertise", "0.0.0.0:7946")},
		{"a flag of silos alone", exitUsage, "pass --cluster-listen", []string{"--name", "a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			code, out, errs := briefly(t, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, c.args...)...)
			if code != c.code || !strings.Contains(errs, c.want) || out != "" {
				t.Errorf("exit code %d\n%s%s", code, out, errs)
			}
			if strings.Contains(errs, `"level"`) {
				t.Errorf("log lines beside the error: %s", errs)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("the data folder was made: %v", err)
			}
		})
	}
	t.Run("an empty variable", func(t *testing.T) {
		t.Setenv("HUBMESH_POSTGRES", "")
		if code, out, errs := briefly(t, "serve", "--data", filepath.Join(t.TempDir(), "data")); code != exitUsage || !strings.Contains(errs, "HUBMESH_POSTGRES, is empty") || out != "" {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		code, _, errs := briefly(t, "serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--postgres", "postgres://u:s3cret@127.0.0.1:1/none")
		if code != exitFailed || !strings.Contains(errs, "does not answer") || strings.Contains(errs, "s3cret") || strings.Count(strings.TrimSpace(errs), "\n") != 0 {
			t.Errorf("a flag beside it: exit code %d: %s", code, errs)
		}
		if code, _, _ := hm(t, "", "version"); code != exitOK {
			t.Errorf("another verb: exit code %d", code)
		}
	})
	// What is found out only with the data open is told as plainly.
	dir := corrupt(t)
	if code, out, errs := briefly(t, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"); code != exitFailed || strings.Count(strings.TrimSpace(errs), "\n") != 0 || out != "" {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// briefly runs one command line that must not serve; one that does is told to stop.
func briefly(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("it serves"))
	defer cancel()
	t.Chdir(t.TempDir()) // for what a wrong name makes
	var o, e bytes.Buffer
	code = run(ctx, args, std{strings.NewReader(""), &o, &e})
	return code, o.String(), e.String()
}

// Issue 2, §5: an empty name is not the folder that the command runs in.
func TestAnImportOfNothingIsRefused(t *testing.T) {
	for _, args := range [][]string{{"import", ""}, {"import", ".", "--content", ""}} {
		code, _, errs := hm(t, "", append(args, "--server", "http://127.0.0.1:1")...)
		if code != exitUsage || !strings.Contains(errs, "the name is empty") {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
	}
}

func corrupt(t *testing.T) string {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "hubmesh.db"), bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

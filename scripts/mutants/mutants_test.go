package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFlagsStandBeforeAndBehindTheNamesOfMutants(t *testing.T) {
	for _, args := range []string{"-seeds 7 no-lanes no-fence", "no-lanes -seeds 7 no-fence", "no-lanes no-fence -seeds=7"} {
		c, err := read(strings.Fields(args), io.Discard)
		if err != nil || c.seeds != 7 || c.list || len(c.mutants) != 2 || c.mutants[0].name != "no-lanes" || c.mutants[1].name != "no-fence" {
			t.Errorf("%q: %d seeds, %v, %v", args, c.seeds, c.mutants, err)
		}
	}
	if c, err := read(nil, io.Discard); err != nil || len(c.mutants) != len(mutants) || c.seeds != 2000 {
		t.Errorf("without arguments: %d mutants, %v", len(c.mutants), err)
	}
}

func TestANameThatNoMutantHasIsRefusedWithThoseThereAre(t *testing.T) {
	_, err := read([]string{"no-lanes", "no-such-rule", "-list"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no mutant is called no-such-rule;") {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if !strings.Contains(err.Error(), m.name) {
			t.Errorf("%s is not listed", m.name)
		}
	}
	for _, args := range [][]string{{"-seeds", "0"}, {"-seeds", "many"}, {"no-lanes", "-sed", "7"}} {
		if _, err := read(args, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestTheTextOfEveryMutantIsThereOnce(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("%s stands twice", m.name)
		}
		names[m.name] = true
		if _, err := m.texts(os.DirFS("../..")); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

func TestAMutantIsNoticedByTheSimulationOrByTheTestThatItNames(t *testing.T) {
	args, kill := mutant{}.noticed(7)
	if got := strings.Join(args, " "); got != "./meshtest/sim -run ^TestTheProtocolHolds$ -seeds 7 -first" || kill != violation {
		t.Error(got)
	}
	args, kill = mutant{test: test{"./internal/hub", "TestThat"}}.noticed(7)
	if got := strings.Join(args, " "); got != "./internal/hub -run ^TestThat$" {
		t.Error(got)
	}
	for out, killed := range map[string]bool{"--- FAIL: TestThat (0.0s)": true, "--- FAIL: TestThatToo (0.0s)": false, "FAIL [build failed]": false, "ok": false} {
		if (kill.FindString(out) != "") != killed {
			t.Errorf("%q", out)
		}
	}
}

func TestTheTestThatAMutantNamesIsThere(t *testing.T) {
	for _, m := range mutants {
		if m.test == (test{}) {
			continue
		}
		files, err := filepath.Glob(filepath.Join("../..", m.test.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "func "+m.test.name+"(t *testing.T)")
		})
		if !found {
			t.Errorf("%s: %s has no test %s", m.name, m.test.pkg, m.test.name)
		}
	}
}

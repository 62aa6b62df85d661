package main

import (
	"io"
	"os"
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

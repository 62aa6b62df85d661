package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestEachCitationIsTiedToTheTestItStandsAt(t *testing.T) {
	root := fstest.MapFS{
		"internal/x/x_test.go": {Data: []byte(`package x

import "testing"

// CR-3, CR-4
// fault 41
func TestWhole(t *testing.T) {
	// CR-5
	t.Run("above the call", func(t *testing.T) {})
	t.Run("at its end", func(t *testing.T) {}) // CR-6
	for _, c := range []struct{ name, in string }{
		{"in a table", "CR-99 in a string is no citation"}, // CR-7
		// CR-8
		{name: "named in a table", in: ""},
		{ // CR-9
			name: "over several lines",
		},
	} {
		_ = c
	}
	// CR-10 in the middle of a function belongs to the function

}

// CR-11: no test, so no proof.
func helper() {}
`)},
		"internal/store/storetest/suite.go": {Data: []byte(`package storetest

import "testing"

// data §1.3.6
func lower(t *testing.T, open func()) {}
`)},
		"web/src/a.test.ts":            {Data: []byte("// DG-1\n// DG-2\nit('says so', () => {})\n// DG-3\n\ntest('not directly below', () => {})\n")},
		"web/node_modules/b/a.test.ts": {Data: []byte("// DG-4\nit('is not ours', () => {})\n")},
	}
	proofs, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range proofs {
		got[p.rule] = p.test
	}
	want := map[string]string{
		"CR-3": "TestWhole", "CR-4": "TestWhole", "fault 41": "TestWhole",
		"CR-5": "TestWhole/above the call", "CR-6": "TestWhole/at its end", "CR-7": "TestWhole/in a table",
		"CR-8": "TestWhole/named in a table", "CR-9": "TestWhole/over several lines", "CR-10": "TestWhole",
		"data §1.3.6": "lower", "DG-1": "says so", "DG-2": "says so",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("proofs (-want +got):\n%s", diff)
	}
}

func TestThePageNamesWhatHasNoTest(t *testing.T) {
	rules, err := parseRules("# Group\nCR-1 | 5 | only reads | really\nCR-2 | 5 | who asks is known\n")
	if err != nil {
		t.Fatal(err)
	}
	text := page(rules, []proof{{"CR-1", "TestA", "internal/x/a_test.go"}, {"fault 9", "TestB", "b_test.go"}})
	for _, want := range []string{
		"1 of 2 rules have a test", "## Group",
		`| CR-1 | only reads \| really | 5 | [x](../internal/x/a_test.go) TestA |`,
		"| CR-2 | who asks is known | 5 | no test yet |",
		"## Cited beyond the list", "| fault 9 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestAListWithAFaultIsRefused(t *testing.T) {
	for _, text := range []string{"CR-1 only", "CR-1 | 5 | a\nCR-1 | 5 | b", "not a rule | 5 | a"} {
		if _, err := parseRules(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestTheRealListIsReadable(t *testing.T) {
	rules, err := parseRules(rulesText)
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 150 {
		t.Fatalf("only %d rules", len(rules))
	}
}

func TestCheckFailsOnAStalePageAndPassesOnAFreshOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(dir, true, &out, &errs); code != 1 {
		t.Fatalf("without a page: exit code %d, want 1", code)
	}
	if code := run(dir, false, &out, &errs); code != 0 {
		t.Fatalf("writing: exit code %d: %s", code, errs.String())
	}
	if code := run(dir, true, &out, &errs); code != 0 {
		t.Fatalf("with the fresh page: exit code %d: %s", code, errs.String())
	}
}

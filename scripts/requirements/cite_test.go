package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCitationsAreReadInEveryFormThatTestsUse(t *testing.T) {
	tests := []struct {
		comment string
		want    []string
	}{
		{"CR-3", []string{"CR-3"}},
		{"invariant 17", []string{"invariant 17"}},
		{"messaging invariant 17", []string{"invariant 17"}},
		{"edge invariants 1, 2 and 6", []string{"edge invariant 1", "edge invariant 2", "edge invariant 6"}},
		{"invariants 10–12, 14", []string{"invariant 10", "invariant 11", "invariant 12", "invariant 14"}},
		{"invariants 10-12", []string{"invariant 10", "invariant 11", "invariant 12"}},
		{"fault 41; data §1.3.6", []string{"fault 41", "data §1.3.6"}},
		{"The reader is told: DG-4, DG-5 (edge.md §1.5).", []string{"DG-4", "DG-5", "edge §1.5"}},
		{"B-1 is not C1, and C-7 is not C37b", []string{"B-1", "C1", "C-7", "C37b"}},
		{"data §2.1: ResolvePath; invariant 47", []string{"data §2.1", "data invariant 47"}},
		{"messaging §1.7, invariant 17", []string{"messaging §1.7", "invariant 17"}},
		{"data §2.1\ninvariant 17", []string{"data §2.1", "invariant 17"}},
		{"AC-R1", []string{"AC-R1"}},
		{"bad input: NUL in a path", []string{"bad input: NUL in a path"}},
		{"bad input: a stale If-Match; messaging §1.7", []string{"bad input: a stale If-Match", "messaging §1.7"}},
		{"nothing is cited: the US-7 form, HTTP 404, RFC 7396", nil},
	}
	for _, test := range tests {
		t.Run(test.comment, func(t *testing.T) {
			if diff := cmp.Diff(test.want, citations(test.comment)); diff != "" {
				t.Fatalf("citations (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzCitationsNeverFail(f *testing.F) {
	f.Add("invariants 1–3 and 5, edge §2.1, bad input: x")
	f.Add("invariants 99999999999999999999")
	f.Fuzz(func(t *testing.T, comment string) {
		for _, rule := range citations(comment) {
			if rule == "" {
				t.Fatalf("an empty rule in %q", comment)
			}
		}
	})
}

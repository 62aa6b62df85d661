package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

// data §1.2
func TestAPathIsTrimmedOfOuterSlashesAndOtherwiseKeptAsItIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/acme/Stories/launch/":                          "acme/Stories/launch",
		"Northwind/Supplier/Gai_pâturage":                "Northwind/Supplier/Gai_pâturage",
		"Northwind/Supplier/Pasta_Buttini_s.r.l.":        "Northwind/Supplier/Pasta_Buttini_s.r.l.",
		"Northwind/Customer/B's Beverages & Co":          "Northwind/Customer/B's Beverages & Co",
		"9to5.co-op_x/日本語/_Thread/m1":                    "9to5.co-op_x/日本語/_Thread/m1",
		"_Access/Admin_Access":                           "_Access/Admin_Access",
		"acme/100%/50%25":                                "acme/100%/50%25",
		"acme/...":                                       "acme/...",
		strings.Repeat("p", 63) + "/x":                   strings.Repeat("p", 63) + "/x",
		"acme/" + strings.Repeat("x", 1024-len("acme/")): "acme/" + strings.Repeat("x", 1024-len("acme/")),
	} {
		got, err := node.ParsePath(text)
		if err != nil || string(got) != want {
			t.Errorf("ParsePath(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// data §1.2, issue: bad input
func TestAnIllegalPathIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		"":                               "empty",
		"///":                            "empty",
		"acme//x":                        "empty segment",
		"acme/../x":                      "'..'",
		"acme/./x":                       "'.'",
		"acme/%2e%2E/x":                  "percent-encoded",
		"acme/a%2Fb":                     "percent-encoded",
		"acme/a%00":                      "percent-encoded",
		"acme/a\x00b":                    "NUL",
		"acme/a\nb":                      "control",
		"acme/a\x7fb":                    "control",
		"acme/a\u0085b":                  "control",
		"acme/a\u2028b":                  "control",
		`acme\x`:                         `'\'`,
		"acme/host~x":                    "'~'",
		"acme/\xff":                      "UTF-8",
		"acme/ x":                        "white space",
		"acme/x\u00a0/y":                 "white space",
		" acme":                          "white space",
		".acme/x":                        "first segment",
		"-acme":                          "first segment",
		"ac me/x":                        "first segment",
		"âcme/x":                         "first segment",
		"_Thread/x":                      "only '_Access' may",
		"_access/x":                      "only '_Access' may",
		"_Inbox/x":                       "only '_Access' may",
		strings.Repeat("p", 64):          "64 bytes; 63",
		strings.Repeat("/x", 1<<19):      "1024 are allowed",
		"a/" + strings.Repeat("x", 1023): "1025 bytes; 1024",
	} {
		_, err := node.ParsePath(text)
		var refused *node.PathError
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, reason) {
			t.Errorf("ParsePath(%.40q) = %v; want a reason with %q", text, err, reason)
		} else if len(err.Error()) > 1000 {
			t.Errorf("ParsePath(%.40q): the message has %d bytes", text, len(err.Error()))
		}
	}
}

func TestJoinAddsOneLegalSegment(t *testing.T) {
	t.Parallel()
	if got, err := node.Path("acme").Join("x y"); err != nil || got != "acme/x y" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := node.Path("").Join("acme"); err != nil || got != "acme" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []struct{ base, segment string }{
		{"acme", "a/b"}, {"acme", ".."}, {"acme", ""}, {"", "ä"}, {"", "_Thread"}, {"acme", strings.Repeat("x", 1020)},
	} {
		var refused *node.PathError
		if got, err := node.Path(bad.base).Join(bad.segment); !errors.As(err, &refused) {
			t.Errorf("Join(%q, %q) = %q, %v; want a PathError", bad.base, bad.segment, got, err)
		}
	}
}

func TestThePartsOfAPath(t *testing.T) {
	t.Parallel()
	p := node.Path("acme/Stories/launch")
	if p.Partition() != "acme" || p.Namespace() != "acme/Stories" || p.Parent() != "acme/Stories" || p.ID() != "launch" || p.Depth() != 3 || p.IsRoot() {
		t.Errorf("parts of %q are wrong", p)
	}
	if got := slices.Collect(p.Segments()); !slices.Equal(got, []string{"acme", "Stories", "launch"}) {
		t.Errorf("segments %q", got)
	}
	if got := slices.Collect(p.Ancestors()); !slices.Equal(got, []node.Path{"acme/Stories", "acme", ""}) {
		t.Errorf("ancestors %q", got)
	}
	root := node.Path("")
	if root.Partition() != "" || root.Parent() != "" || root.ID() != "" || root.Depth() != 0 || !root.IsRoot() || len(slices.Collect(root.Segments())) != 0 {
		t.Error("parts of the root scope are wrong")
	}
	if top := node.Path("acme"); top.Parent() != "" || top.ID() != "acme" || top.Depth() != 1 {
		t.Error("parts of a top-level path are wrong")
	}
}

// architecture decision 12: prefixes are bounded by segments
func TestAPathContainsItselfAndWhatIsBelowByWholeSegments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outer, inner node.Path
		want         bool
	}{
		{"ACME", "ACME", true}, {"ACME", "ACME/x", true}, {"ACME", "ACME2", false}, {"ACME", "ACME2/x", false},
		{"ACME/x", "ACME", false}, {"", "ACME", true}, {"", "", true}, {"ACME", "", false}, {"ACME", "acme/x", false},
	} {
		if got := c.outer.Contains(c.inner); got != c.want {
			t.Errorf("%q contains %q = %v", c.outer, c.inner, got)
		}
	}
}

// data §1.2: cut at the first satellite segment, whole segments, any letter case
func TestASatellitesOwnerIsEverythingBeforeItsFirstSatelliteSegment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, owner node.Path
		kind        string
		ok          bool
	}{
		{"acme/x/_Comment/1/_Thread/2", "acme/x", "_Comment", true},
		{"acme/_thread/t/_ThreadMessage/m", "acme", "_Thread", true},
		{"acme/_THREADMESSAGE/m", "acme", "_ThreadMessage", true},
		{"acme/_UserActivity/m", "acme", "_UserActivity", true},
		{"_Access/x", "", "_Access", true},
		{"acme/_Access", "acme", "_Access", true},
		{"acme/_Accesses/x", "", "", false},
		{"acme/x_Access/y", "", "", false},
		{"acme/_Inbox/y", "", "", false},
		{"acme/Source/y", "", "", false},
		{"acme", "", "", false},
		{"", "", "", false},
	} {
		owner, kind, ok := c.path.Satellite()
		if owner != c.owner || kind != c.kind || ok != c.ok {
			t.Errorf("%q: %q, %q, %v", c.path, owner, kind, ok)
		}
		want := c.path
		if c.ok {
			want = c.owner
		}
		if got := c.path.Main(); got != want {
			t.Errorf("%q: main node %q", c.path, got)
		}
	}
}

func TestAnAssignmentIsAboutTheScopeBeforeItsAccessSegment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, scope node.Path
		ok          bool
	}{
		{"acme/x/_Access/Emma", "acme/x", true}, {"_Access/Emma", "", true},
		{"acme/_Access", "", false}, {"_Access", "", false}, {"acme/_Thread/1/_Access/Emma", "", false}, {"acme/x", "", false},
	} {
		if scope, ok := c.path.Scope(); scope != c.scope || ok != c.ok {
			t.Errorf("%q: %q, %v", c.path, scope, ok)
		}
	}
}

func TestPathsAreOrderedAsAWalkThroughTheTreeMeetsThem(t *testing.T) {
	t.Parallel()
	ordered := []node.Path{"", "a", "a/ b", "a/b", "a/b/c", "a/b c", "a/b-c", "a/b.c", "a/bc", "a b", "a-b", "a-b/a", "b", "é"}
	for i, p := range ordered {
		for j, q := range ordered {
			if got := p.Compare(q); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q compared with %q is %d", p, q, got)
			}
		}
	}
}

func TestPathsThatDifferInCaseOnlyFoldToTheSameKey(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]node.Path{{"acme/Launch", "ACME/lAUNCH"}, {"a/pâté", "a/PÂTÉ"}, {"a/σς", "a/ΣΣ"}, {"a/k", "a/\u212a"}, {"a/ſ", "a/S"}} {
		if pair[0].Fold() != pair[1].Fold() {
			t.Errorf("%q folds to %q, %q to %q", pair[0], pair[0].Fold(), pair[1], pair[1].Fold())
		}
	}
	if node.Path("a/pate").Fold() == node.Path("a/pâté").Fold() {
		t.Error("a diacritic is not letter case")
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"acme/x", "/a/", "a/../b", "a/%2e", "a\\b", "a/\xff", "_Access/x", "a/_thread/b", "a/ü ü", "a~b", "a/\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := node.ParsePath(text)
		if err != nil {
			if p != "" {
				t.Fatalf("a refused path is returned: %q", p)
			}
			return
		}
		again, err := node.ParsePath(p.String())
		if err != nil || again != p {
			t.Fatalf("%q parses to %q, which parses to %q, %v", text, p, again, err)
		}
		var rebuilt node.Path
		for segment := range p.Segments() {
			if rebuilt, err = rebuilt.Join(segment); err != nil {
				t.Fatalf("segment %q of %q: %v", segment, p, err)
			}
		}
		if rebuilt != p {
			t.Fatalf("the segments of %q join to %q", p, rebuilt)
		}
		if owner, _, ok := p.Satellite(); ok && !owner.Contains(p) {
			t.Fatalf("the owner %q does not contain %q", owner, p)
		}
		if node.Path(p.Fold()).Fold() != p.Fold() {
			t.Fatalf("folding %q twice differs", p)
		}
	})
}

package address

import (
	"strings"
	"testing"
)

// messaging §1.1
func TestFullFormReadsHostsOutermostFirst(t *testing.T) {
	a, err := Parse("portal/1~acme/Stories~sync/42")
	if err != nil {
		t.Fatal(err)
	}
	if a.Path() != "sync/42" || a.Type() != "sync" || a.ID() != "42" {
		t.Fatalf("got path %q type %q id %q", a.Path(), a.Type(), a.ID())
	}
	host, ok := a.Host()
	if !ok || host.Path() != "acme/Stories" {
		t.Fatalf("host: %v", host)
	}
	outer, ok := host.Host()
	if !ok || outer.Path() != "portal/1" {
		t.Fatalf("outer host: %v", outer)
	}
	if got := a.String(); got != "portal/1~acme/Stories~sync/42" {
		t.Fatalf("written back as %q", got)
	}
}

// messaging §1.1
func TestEqualityIsCaseSensitiveAndKnowsTheHost(t *testing.T) {
	a := Of("acme/x").Within(Of("mesh/1"))
	for _, other := range []Address{Of("acme/X").Within(Of("mesh/1")), Of("acme/x"), Of("acme/x").Within(Of("mesh/2"))} {
		if a.Equal(other) || other.Equal(a) {
			t.Errorf("%v equals %v", a, other)
		}
	}
	if !a.Equal(Of("acme/x").Within(Of("mesh/1"))) {
		t.Error("not equal to itself")
	}
	if a.Path() != Of("acme/x").Path() {
		t.Error("the registry key must ignore the host")
	}
}

// messaging §1.1
func TestComparingAndReadingAnAddressAllocatesNothing(t *testing.T) {
	a := Of("acme/Stories/launch").Within(Of("mesh/1"))
	b := Of("acme/Stories/launch").Within(Of("mesh/1"))
	if n := testing.AllocsPerRun(100, func() {
		if !a.Equal(b) || a.Type() != "acme" || a.ID() != "Stories/launch" || a.Path() == "" {
			t.Fail()
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// messaging §1.1
func TestBadAddressesAreRefusedWithAReason(t *testing.T) {
	for _, bad := range []string{"", "/", "a//b", "a\x00b", "a~", "~a", "a\xff", strings.Repeat("a/", 3000), strings.Repeat("a~", 60) + "a"} {
		if a, err := Parse(bad); err == nil {
			t.Errorf("%.40q was read as %v", bad, a)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a/b/c", "host/1~a/b", "a~b~c", "~", "a//b", "ä/ö"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			return
		}
		b, err := Parse(a.String())
		if err != nil || !a.Equal(b) {
			t.Fatalf("%q reads back as %v, %v", a.String(), b, err)
		}
	})
}

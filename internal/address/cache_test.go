package address

import (
	"fmt"
	"strings"
	"testing"
)

// messaging §1.1
func TestACacheAnswersAsParseDoesHoweverManyTextsShareAPlace(t *testing.T) {
	c := NewCache()
	texts := []string{"", "/", "a//b", "acme/Stories", "/acme/Stories/", "portal/1~acme/x~sync/42", strings.Repeat("x", maxCached+1), strings.Repeat("x", MaxLength+1)}
	for i := range 3 * cacheSize {
		texts = append(texts, fmt.Sprint("portal/", i))
	}
	for range 2 {
		for _, text := range texts {
			want, wrong := Parse(text)
			for _, parse := range []func() (*Address, error){
				func() (*Address, error) { return c.Parse(text) }, func() (*Address, error) { return c.ParseBytes([]byte(text)) },
			} {
				got, err := parse()
				if fmt.Sprint(err) != fmt.Sprint(wrong) {
					t.Fatalf("%.40q: %v, not %v", text, err, wrong)
				}
				if err == nil && !got.Equal(want) {
					t.Fatalf("%.40q was read as %v", text, got)
				}
			}
		}
	}
}

func TestAnAddressThatIsKnownCostsNoAllocation(t *testing.T) {
	c, text := NewCache(), []byte("portal/1~acme/x")
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.ParseBytes(text); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

package message

import "testing"

// bad input: a problem quotes a part of what was sent
func TestALongTextIsCutBetweenTwoLetters(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"", 0, ""}, {"four", 4, "four"}, {"fourth", 4, "four…"}, {"aéé", 2, "a…"}, {"aéé", 3, "aé…"}} {
		if got := Shorten(c.text, c.most); got != c.want {
			t.Errorf("%q cut at %d is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

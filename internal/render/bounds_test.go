package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile are documents of about n bytes that made the parser look at the same text again and again.
func hostile(n int) map[string]string {
	again := func(s string) string { return strings.Repeat(s, n/len(s)) }
	var lists, ticks, defined, named strings.Builder
	for i := 0; lists.Len() < n; i++ {
		lists.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	for i := 1; ticks.Len() < n; i++ {
		ticks.WriteString(strings.Repeat("`", i) + " ")
	}
	for i := 0; defined.Len() < n/2; i++ {
		fmt.Fprintf(&defined, "[^%d]: x\n", i)
		fmt.Fprintf(&named, "[^%d] ", i)
	}
	return map[string]string{
		"unfinished destinations in angle brackets": again("[a](<"),
		"unfinished destinations":                   again("[a]("),
		"destinations of brackets":                  again("[a](b("),
		"titles":                                    again(`[a](b "`),
		"open brackets":                             again("["),
		"open images":                               again("!["),
		"brackets in brackets":                      strings.Repeat("[*a* ", n/10) + strings.Repeat("]", n/10),
		"images in images":                          strings.Repeat("![", n/8) + strings.Repeat("](a)", n/8),
		"emphases that cross":                       again("*a_ "),
		"emphases that never fit":                   "a**b" + again(" c*"),
		"stars that are none":                       strings.Repeat(" *", n/4) + strings.Repeat("a* ", n/6),
		"strokes":                                   again("~~a ~b"),
		"runs of ticks":                             ticks.String(),
		"tags":                                      again("x <a "),
		"attributes":                                again(`x <a b="`),
		"comments":                                  again("x <!-- "),
		"instructions":                              again("x <? "),
		"declarations":                              again("x <!A "),
		"data":                                      again("x <![CDATA[ "),
		"automatic links":                           again("<http:"),
		"bare links":                                again("www.a) "),
		"mentions":                                  again("@a/b("),
		"called mentions":                           again(` @@("`),
		"quotes in quotes":                          again("> "),
		"quotes over lines":                         again(strings.Repeat("> ", 99) + "a\n"),
		"lists in lists":                            lists.String(),
		"notes in notes":                            again("[^a]: "),
		"notes by name":                             named.String() + "\n\n" + defined.String(),
		"definitions":                               again("[a]: b\n"),
		"one long definition":                       "[a]: " + strings.Repeat("b", n/2) + "\n\n" + strings.Repeat("[a] ", n/8),
		"a table":                                   again("|a"),
		"a table of short rows":                     strings.Repeat("|a", n/8) + "|\n" + strings.Repeat("|-", n/8) + "|\n" + strings.Repeat("|\n", n/4),
		"pipes in code in a table":                  "|a|\n|-|\n" + again("|`\\|`|\n"),
		"headings of one name":                      again("# a\n"),
		"tags in tags":                              again("<b>"),
	}
}

// renderTime is the best of some renderings, so that what runs beside it counts less.
func renderTime(t *testing.T, r *Renderer, text string) (time.Duration, error) {
	t.Helper()
	best := time.Hour
	var last error
	for range 2 {
		begin := time.Now()
		_, last = r.RenderText(t.Context(), "acme/x", text)
		best = min(best, time.Since(begin))
	}
	return best, last
}

// Issue 2, bad input: nobody keeps a processor busy with a small document. Each either takes time in
// proportion to its size, or is refused once it has taken a bounded amount of work.
func TestAHostileDocumentIsRenderedInProportionOrRefused(t *testing.T) {
	if testing.Short() || slow {
		t.Skip("measures the rendering of some megabytes")
	}
	r := New(one{})
	small, large := hostile(50_000), hostile(200_000)
	for name := range small {
		t.Run(name, func(t *testing.T) {
			// On a busy machine a turn of somebody else is in the time: the best of some counts.
			var before, after time.Duration
			for range 4 {
				one, err := renderTime(t, r, small[name])
				var tooLarge *TooLargeError
				if err != nil && !errors.As(err, &tooLarge) {
					t.Fatal(err)
				}
				four, err := renderTime(t, r, large[name])
				if err != nil && !errors.As(err, &tooLarge) {
					t.Fatal(err)
				}
				if before, after = max(before, one), four; after < time.Second/2 || after < 5*before {
					break
				}
			}
			t.Logf("%v, %v", before, after)
			// Four times the size: linear is 4, quadratic 16. Below half a second nothing is proved.
			if after > time.Second/2 && after > 10*before {
				t.Errorf("50 KB took %v, 200 KB %v", before, after)
			}
			if after > renderBound {
				t.Errorf("200 KB took %v", after)
			}
		})
	}
}

// Issue 2, bad input: the work ends when nobody waits for it.
func TestARenderingEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller left")
	cancel(gone)
	if _, err := New(one{}).RenderText(ctx, "acme/x", strings.Repeat("*a* ", 10_000)); !errors.Is(err, gone) {
		t.Fatalf("%v", err)
	}
}

// Issue 2, bad input.
func TestADocumentOverTheLimitIsRefused(t *testing.T) {
	var tooLarge *TooLargeError
	if _, err := New(one{}).RenderText(t.Context(), "acme/x", strings.Repeat("a", MaxDocument+1)); !errors.As(err, &tooLarge) {
		t.Fatalf("%v", err)
	}
	if _, err := New(one{}).RenderText(t.Context(), "acme/x", strings.Repeat("a ", MaxDocument/2)); err != nil {
		t.Fatal(err)
	}
}

// Issue 2, bad input: as many as there are slots are rendered, a bounded number waits, and the next is
// refused with a time to come back.
func TestOnlySoManyDocumentsAreRenderedAtATime(t *testing.T) {
	r := New(one{})
	for range cap(r.slots) {
		r.slots <- struct{}{}
	}
	r.waiting.Store(maxWaiting)
	_, err := r.RenderText(t.Context(), "acme/x", "a")
	var busy *BusyError
	if !errors.As(err, &busy) || busy.RetryAfter() <= 0 || busy.ProblemCode() != "overloaded" {
		t.Fatalf("%v", err)
	}
	// The control: with one of them done there is a place.
	<-r.slots
	if out := must(r.RenderText(t.Context(), "acme/x", "a")); out != "<p>a</p>\n" {
		t.Fatalf("%q", out)
	}
}

func must(s string, err error) string {
	if err != nil {
		return err.Error()
	}
	return s
}

// edge §4
func TestARelativeMentionStaysInTheTree(t *testing.T) {
	for md, want := range map[string]string{
		"@../Top":                   `href="/acme/Docs/Top"`,
		"@./below/x":                `href="/acme/Docs/page/below/x"`,
		`@@("../Top")`:              `href="/acme/Docs/Top"`,
		"@@../pic.svg":              `src="/api/content/acme/Docs/pic.svg"`,
		"@../../../../etc/passwd":   "<p>@../../../../etc/passwd</p>",
		`@@("../../../../etc/x")`:   "<p>@@(&#34;../../../../etc/x&#34;)</p>",
		"@acme/../../x/y":           "<p>@acme/../../x/y</p>",
		"@acme/Docs/../Other/place": `href="/acme/Other/place"`,
	} {
		if out := rendered(t, "acme/Docs/page", md); !strings.Contains(out, want) || strings.Contains(out, `"/..`) {
			t.Errorf("%s lacks %s\n%s", md, want, out)
		}
	}
}

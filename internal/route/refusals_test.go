package route

import (
	"fmt"
	"testing"
	"time"
)

// C34
func TestRefusalsOfMoreAddressesThanAreRememberedShareOneWarning(t *testing.T) {
	var l refusalLog
	loud, quiet := 0, 0
	count := func(addr string, now time.Duration) {
		suppressed, told := l.note(addr, now)
		if quiet += suppressed; told {
			loud++
		}
	}
	for round := range 3 { // within 60 s
		for i := range maxRefused + 1000 {
			count(fmt.Sprint("acme/", i), time.Duration(round)*10*time.Second)
		}
	}
	if loud != maxRefused+1 {
		t.Errorf("%d warnings of %d addresses", loud, maxRefused+1000)
	}
	loud = 0
	for i := range maxRefused + 1000 { // those that are remembered are quiet no more
		count(fmt.Sprint("acme/", i), 70*time.Second)
	}
	if loud != maxRefused+1 || quiet != 2*maxRefused+3*1000-1 {
		t.Errorf("%d warnings, %d refusals told as suppressed", loud, quiet)
	}
	if len(l.at) != maxRefused || len(l.queue) != maxRefused {
		t.Errorf("%d are remembered, %d stand in line", len(l.at), len(l.queue))
	}
}

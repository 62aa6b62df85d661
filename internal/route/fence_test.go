package route

import (
	"fmt"
	"testing"
)

// protocol §6
func TestWhatWasRefusedOnALaneRefusesThatLaneAndOlderOnes(t *testing.T) {
	var f Fences
	if f.Blocks(1, "portal/1", 1) {
		t.Fatal("nothing was refused")
	}
	f.Raise(1, "portal/1", 5)
	f.Raise(1, "portal/1", 3) // an older lane refused late takes nothing back
	for lane := uint64(1); lane <= 5; lane++ {
		if !f.Blocks(1, "portal/1", lane) {
			t.Fatalf("lane %d passes", lane)
		}
	}
	for _, other := range []struct {
		from uint64
		addr string
	}{{2, "portal/1"}, {1, "portal/2"}} {
		if f.Blocks(other.from, other.addr, 1) {
			t.Fatalf("%+v is blocked", other)
		}
	}
}

// protocol §6
func TestANewerLaneTakesTheFenceAway(t *testing.T) {
	var f Fences
	f.Raise(1, "portal/1", 5)
	if f.Blocks(1, "portal/1", 6) {
		t.Fatal("the next lane is blocked")
	}
	if len(f.at) != 0 {
		t.Fatalf("%d fences", len(f.at))
	}
}

// protocol §7
func TestFencesAreBoundedAndTheOldestGoes(t *testing.T) {
	var f Fences
	f.Raise(1, "again", 1)
	f.Raise(1, "first", 1)
	f.Blocks(1, "again", 2) // taken away
	for i := range maxFences - 2 {
		f.Raise(1, fmt.Sprint(i), 1)
	}
	f.Raise(1, "again", 3) // the queue still holds its first one, which is dropped here
	if !f.Blocks(1, "again", 3) {
		t.Fatal("a fence went with the one that stood there before it")
	}
	if !f.Blocks(1, "first", 1) {
		t.Fatal("a fence went within the bound")
	}
	f.Raise(1, "one more", 1)
	if f.Blocks(1, "first", 1) {
		t.Fatal("the oldest stays beyond the bound")
	}
	if len(f.at) > maxFences || len(f.queue) > maxFences {
		t.Fatalf("%d fences, %d in order", len(f.at), len(f.queue))
	}
}

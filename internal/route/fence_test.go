package route

import (
	"fmt"
	"testing"
	"time"
)

// protocol §6
func TestWhatWasRefusedOnALaneRefusesThatLaneAndOlderOnes(t *testing.T) {
	var f Fences
	if f.Blocks(1, "portal/1", 1, 0) {
		t.Fatal("nothing was refused")
	}
	f.Raise(1, "portal/1", 5, 0)
	f.Raise(1, "portal/1", 3, 0) // an older lane refused late takes nothing back
	for lane := uint64(1); lane <= 5; lane++ {
		if !f.Blocks(1, "portal/1", lane, 0) {
			t.Fatalf("lane %d passes", lane)
		}
	}
	for _, other := range []struct {
		from uint64
		addr string
	}{{2, "portal/1"}, {1, "portal/2"}} {
		if f.Blocks(other.from, other.addr, 1, 0) {
			t.Fatalf("%+v is blocked", other)
		}
	}
}

// protocol §6
func TestANewerLaneTakesTheFenceAway(t *testing.T) {
	var f Fences
	f.Raise(1, "portal/1", 5, 0)
	if f.Blocks(1, "portal/1", 6, 0) {
		t.Fatal("the next lane is blocked")
	}
	if len(f.at) != 0 {
		t.Fatalf("%d fences", len(f.at))
	}
}

// protocol §7
func TestFencesAreBoundedAndTheOldestGoes(t *testing.T) {
	var f Fences
	f.Raise(1, "again", 1, 0)
	f.Raise(1, "first", 1, 0)
	f.Blocks(1, "again", 2, 0) // taken away
	for i := range maxFences - 2 {
		f.Raise(1, fmt.Sprint(i), 1, 0)
	}
	f.Raise(1, "again", 3, 0) // the queue still holds its first one, which is dropped here
	if !f.Blocks(1, "again", 3, 0) {
		t.Fatal("a fence went with the one that stood there before it")
	}
	if !f.Blocks(1, "first", 1, 0) {
		t.Fatal("a fence went within the bound")
	}
	f.Raise(1, "one more", 1, 0)
	if f.Blocks(1, "first", 1, 0) {
		t.Fatal("the oldest stays beyond the bound")
	}
	if len(f.at) > maxFences || len(f.queue) > maxFences {
		t.Fatalf("%d fences, %d in order", len(f.at), len(f.queue))
	}
}

// protocol §7: as long as a tombstone
func TestAFenceIsForgottenTenMinutesAfterItWasLastRaised(t *testing.T) {
	var f Fences
	const minute = time.Minute
	f.Raise(1, "portal/1", 5, 0)
	f.Raise(1, "portal/2", 5, minute)
	f.Raise(1, "portal/1", 5, 5*minute) // refused again: the sender may still have more of the lane
	if !f.Blocks(1, "portal/2", 5, 11*minute-1) {
		t.Fatal("it was forgotten early")
	}
	if f.Blocks(1, "portal/2", 5, 11*minute) {
		t.Fatal("it stays")
	}
	if !f.Blocks(1, "portal/1", 5, 15*minute-1) {
		t.Fatal("it counts from when it was raised first")
	}
	if !f.Any() {
		t.Fatal("there is one")
	}
	f.Raise(1, "portal/3", 5, 14*minute)
	f.Raise(1, "portal/4", 5, 14*minute)
	f.Raise(1, "portal/3", 5, 23*minute)
	f.Raise(1, "portal/5", 5, 23*minute+1)
	f.Blocks(2, "another", 1, 24*minute) // 3 is behind 5 now
	if !f.Blocks(1, "portal/3", 5, 33*minute-1) || f.Blocks(1, "portal/3", 5, 33*minute) {
		t.Fatal("it stands until its turn in the queue")
	}
	f.Blocks(2, "another", 1, 34*minute)
	if f.Any() || len(f.queue) != 0 {
		t.Fatalf("%d fences, %d in order", len(f.at), len(f.queue))
	}
	for n := range 100_000 { // addresses that come once
		f.Raise(1, fmt.Sprint("portal/", n), 1, time.Duration(n)*time.Second)
	}
	if len(f.at) > 600 || len(f.queue) > 600 {
		t.Fatalf("%d fences of one a second, %d in order", len(f.at), len(f.queue))
	}
}

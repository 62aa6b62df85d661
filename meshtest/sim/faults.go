package sim

import (
	"fmt"
	"time"
)

// Kind is a kind of disturbance.
type Kind uint8

// The disturbances.
const (
	Crash Kind = iota
	Pause
	Cut      // between two silos, one way or both
	Isolate  // from all silos, perhaps from the table too
	TableOff // the table's server does not answer
	TableCut // one silo cannot reach it
	Leave
	Loss
	Slow
	Deaf // notifications of the table are lost
	Failover
	Join
	LoseEntries // entries vanish, whatever the cause
	CrashTwo
	kinds
)

var kindNames = [...]string{"crash", "pause", "cut", "isolate", "table-off", "table-cut", "leave", "loss", "slow", "deaf", "failover", "join", "lose-entries", "crash-two"}

func (k Kind) String() string { return kindNames[k] }

// Disturbance is one thing that goes wrong. A, B and C are draws that choose whom it hits.
type Disturbance struct {
	At   time.Duration
	Kind Kind
	For  time.Duration
	A, B uint32
	Flag bool
}

func (d Disturbance) String() string {
	return fmt.Sprintf("%v %s for %v (%d, %d, %v)", d.At.Round(time.Millisecond), d.Kind, d.For.Round(time.Millisecond), d.A, d.B, d.Flag)
}

// strike makes a disturbance happen; it ends by itself, and at the latest when undo is called.
func (w *world) strike(d Disturbance, end time.Duration, undo *[]func()) {
	pick := func(n uint32) *process {
		a := w.alive()
		if len(a) == 0 {
			return nil
		}
		return a[int(n)%len(a)]
	}
	for_ := min(d.For, end-w.now)
	during := func(set func(on bool)) {
		set(true)
		over := false
		off := func() {
			if !over {
				over = true
				set(false)
			}
		}
		*undo = append(*undo, off)
		w.after(for_, nil, off)
	}
	step := func(n *int) func(bool) {
		return func(on bool) {
			if on {
				*n++
			} else {
				*n--
			}
			w.disturbNetwork()
		}
	}
	if w.trace != nil {
		fmt.Fprintf(w.trace.to, "%12v %v\n", w.now, d)
	}
	w.check.count("disturbance: "+d.Kind.String(), 1)
	switch d.Kind {
	case Crash:
		if p := pick(d.A); p != nil {
			p.crash()
			if d.B%4 > 0 {
				w.after(for_, nil, func() { w.restart(p) })
			}
		}
	case CrashTwo:
		for _, n := range []uint32{d.A, d.B} {
			if p := pick(n); p != nil && len(w.alive()) > 1 {
				p.crash()
			}
		}
	case Pause:
		if p := pick(d.A); p != nil {
			w.pause(p, for_)
		}
	case Cut:
		a, b := w.names[int(d.A)%len(w.names)], w.names[int(d.B)%len(w.names)]
		if a != b {
			during(func(on bool) {
				w.setCut(a, b, on)
				if !d.Flag {
					w.setCut(b, a, on)
				}
			})
		}
	case Isolate:
		a := w.names[int(d.A)%len(w.names)]
		others := append([]string(nil), w.names...)
		if d.Flag {
			others = append(others, tableName)
		}
		during(func(on bool) {
			for _, b := range others {
				if a != b {
					w.setCut(a, b, on)
					w.setCut(b, a, on)
				}
			}
		})
	case TableOff:
		during(step(&w.table.down))
	case TableCut:
		a := w.names[int(d.A)%len(w.names)]
		during(func(on bool) { w.setCut(a, tableName, on); w.setCut(tableName, a, on) })
	case Leave:
		if p := pick(d.A); p != nil {
			p.leave()
			if d.B%4 > 0 {
				w.after(for_, nil, func() { w.restart(p) })
			}
		}
	case Loss:
		during(step(&w.lossy))
	case Slow:
		during(step(&w.slow))
	case Deaf:
		during(step(&w.table.deaf))
	case Failover:
		if !w.opts.NoFailover {
			w.table.failover(time.Duration(d.A%800) * time.Millisecond)
		}
	case Join:
		if len(w.names) < max(maxSilos, w.opts.Silos+3) {
			w.add(fmt.Sprintf("s%d", len(w.names)))
		}
	case LoseEntries:
		w.loseEntries(d.A)
	}
}

// disturbNetwork makes the network as bad as the disturbances that are on.
func (w *world) disturbNetwork() {
	loss, slower := 0.0, time.Duration(0)
	if w.lossy > 0 {
		loss = 0.2
	}
	if w.slow > 0 {
		slower = 300 * time.Millisecond
	}
	w.net.SetLoss(loss)
	w.net.SetSlow(slower)
}

// restart brings a silo back at its name and address, once it is gone.
func (w *world) restart(p *process) {
	if w.current[p.name] != p || w.resting() {
		return
	}
	p.crash()
	w.start(p.name)
}

// loseEntries takes one entry from some of the owned slots, as no cause that is known would.
func (w *world) loseEntries(draw uint32) {
	for _, p := range w.alive() {
		for _, a := range p.silo.Owner.Lose(func(slot int) bool { return (uint32(slot)*2654435761+draw)%6 == 0 }) {
			w.check.lost[a] = true
			w.check.count("entries taken away", 1)
		}
	}
}

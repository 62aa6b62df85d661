package sim

import (
	"fmt"
	"strings"
)

// Shrink finds a smaller schedule of a failing run with which the same kind of violation is still seen. It
// takes disturbances out one at a time until none can go, and then makes those that are left shorter.
func Shrink(r Result) Result {
	same := func(o Result) bool {
		for k := range r.Violations {
			if o.Violations[k] > 0 {
				return true
			}
		}
		return false
	}
	try := func(s []Disturbance) (Result, bool) {
		o := Run(Options{Seed: r.Seed, Schedule: s})
		return o, same(o)
	}
	for again := true; again; {
		again = false
		for i := 0; i < len(r.Schedule); i++ {
			fewer := append(append([]Disturbance{}, r.Schedule[:i]...), r.Schedule[i+1:]...)
			if o, fails := try(fewer); fails {
				r, again = o, true
				i--
			}
		}
	}
	for i := range r.Schedule {
		for range 4 {
			shorter := append([]Disturbance(nil), r.Schedule...)
			shorter[i].For /= 2
			o, fails := try(shorter)
			if !fails {
				break
			}
			r = o
		}
	}
	return r
}

// Report tells of a failing run: what was violated, the disturbances that it takes, and the command that
// runs it again.
func (r Result) Report() string {
	var b strings.Builder
	b.WriteString(r.String())
	for _, d := range r.Schedule {
		fmt.Fprintf(&b, "  %v\n", d)
	}
	fmt.Fprintf(&b, "again: go test ./meshtest/sim -run TestTheProtocolHolds -seeds 1 -from %d -schedule '%s'\n", r.Seed, Format(r.Schedule))
	return b.String()
}

// Format writes a schedule as [ParseSchedule] reads it.
func Format(s []Disturbance) string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = fmt.Sprintf("%d:%s:%d:%d:%d:%v", d.At, d.Kind, d.For, d.A, d.B, d.Flag)
	}
	return strings.Join(parts, ",")
}

// ParseSchedule reads what [Format] has written. An empty text is no disturbance at all.
func ParseSchedule(text string) ([]Disturbance, error) {
	out := []Disturbance{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" || part == "none" {
			continue
		}
		fields := strings.Split(part, ":")
		if len(fields) != 6 {
			return nil, fmt.Errorf("sim: a disturbance has 6 fields, not %d: %q", len(fields), part)
		}
		var d Disturbance
		known := false
		for k := range kinds {
			if k.String() == fields[1] {
				d.Kind, known = k, true
			}
		}
		if !known {
			return nil, fmt.Errorf("sim: no kind of disturbance is named %q", fields[1])
		}
		rest := strings.Join([]string{fields[0], fields[2], fields[3], fields[4], fields[5]}, " ")
		if _, err := fmt.Sscan(rest, (*int64)(&d.At), (*int64)(&d.For), &d.A, &d.B, &d.Flag); err != nil {
			return nil, fmt.Errorf("sim: %q: %w", part, err)
		}
		out = append(out, d)
	}
	return out, nil
}

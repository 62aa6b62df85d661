package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Result is what one scenario writes.
type Result struct {
	Scenario    string             `json:"scenario"`
	Unit        string             `json:"unit"`
	Subjects    map[string]Spread  `json:"subjects"`
	Ratios      map[string]float64 `json:"ratios"`
	Metrics     map[string]float64 `json:"metrics"`
	Goals       []Goal             `json:"goals"`
	Notes       []string           `json:"notes,omitempty"`
	Environment Environment        `json:"environment"`

	samples map[string][]float64
}

// Spread is the distribution of a subject's rounds.
type Spread struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
	Runs   int     `json:"runs"`
}

// Goal is a metric or ratio with what it must reach.
type Goal struct {
	Metric string  `json:"metric"`
	Op     string  `json:"op"`
	Value  float64 `json:"value"`
	Got    float64 `json:"got"`
	Met    bool    `json:"met"`
}

// Environment says where the figures are from.
type Environment struct {
	Go     string    `json:"go"`
	OS     string    `json:"os"`
	CPUs   int       `json:"cpus"`
	At     time.Time `json:"at"`
	Rounds int       `json:"rounds"`
}

func newResult(scenario, unit string, rounds int) *Result {
	return &Result{Scenario: scenario, Unit: unit, Subjects: map[string]Spread{}, Ratios: map[string]float64{}, Metrics: map[string]float64{},
		samples: map[string][]float64{}, Environment: Environment{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), time.Now().UTC(), rounds}}
}

func (r *Result) add(subject string, value float64) {
	r.samples[subject] = append(r.samples[subject], value)
}

func (r *Result) median(subject string) float64 { return quantile(r.samples[subject], 0.5) }

// ratio records subject ÷ base, of medians of pairs: round by round, so that a drift of the machine
// cancels out.
func (r *Result) ratio(name, subject, base string) float64 {
	a, b := r.samples[subject], r.samples[base]
	var pairs []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			pairs = append(pairs, a[i]/b[i])
		}
	}
	r.Ratios[name] = round(quantile(pairs, 0.5))
	return r.Ratios[name]
}

func (r *Result) metric(name string, v float64) { r.Metrics[name] = round(v) }

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// goal judges a metric or a ratio that has been recorded.
func (r *Result) goal(name, op string, value float64) {
	got, ok := r.Metrics[name]
	if !ok {
		got, ok = r.Ratios[name]
	}
	met := ok && (op == "<=" && got <= value || op == ">=" && got >= value)
	r.Goals = append(r.Goals, Goal{name, op, value, got, met})
}

func (r *Result) write(dir string) error {
	for name, list := range r.samples {
		r.Subjects[name] = Spread{round(quantile(list, 0.5)), round(quantile(list, 0.1)), round(quantile(list, 0.9)), len(list)}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, r.Scenario+".json"), append(text, '\n'), 0o644)
}

func (r *Result) print() {
	fmt.Printf("== %s (%s)\n", r.Scenario, r.Unit)
	for _, name := range sorted(r.samples) {
		fmt.Printf("   %-34s median %10.1f  p10 %10.1f  p90 %10.1f  runs %d\n", name, quantile(r.samples[name], 0.5), quantile(r.samples[name], 0.1), quantile(r.samples[name], 0.9), len(r.samples[name]))
	}
	for _, name := range sorted(r.Ratios) {
		fmt.Printf("   ratio  %-40s %.3f\n", name, r.Ratios[name])
	}
	for _, name := range sorted(r.Metrics) {
		fmt.Printf("   metric %-40s %.3f\n", name, r.Metrics[name])
	}
	for _, g := range r.Goals {
		verdict := "met"
		if !g.Met {
			verdict = "MISSED"
		}
		fmt.Printf("   goal   %-40s %s %g: %g %s\n", g.Metric, g.Op, g.Value, g.Got, verdict)
	}
	for _, n := range r.Notes {
		fmt.Printf("   note   %s\n", n)
	}
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	s := slices.Clone(list)
	slices.Sort(s)
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func round(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*1000) / 1000
}

// cpu is the processor time of this process so far, user and system.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is the live heap after two collections, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
)

// scenario is one measurement.
type scenario struct {
	name string
	help string
	run  func(ctx context.Context, rounds int) (*Result, error)
}

func scenarios() []scenario {
	return []scenario{
		{"ask", "asks in process against a bare mailbox and Proto.Actor", askScenario},
		{"budget", "the cost of a budget hop, and whose diagnosis arrives under load", budgetScenario},
		{"idle", "memory and collection with 100,000 idle node hubs", idleScenario},
		{"flood", "asks to others while one hub is flooded", floodScenario},
		{"writes", "durable writes on SQLite, over HTTP and against bare transactions", writesScenario},
		{"import", "an import of generated nodes, its re-run, and reads beside it", importScenario},
		{"cold", "the first content read of nodes nobody has touched", coldScenario},
		{"cluster-ask", "asks between two silos against a bare connection and peers", clusterAskScenario},
		{"cluster-refusal", "refusals of unserved addresses, and the end of what is in flight when a silo dies", clusterRefusalScenario},
		{"cluster-claims", "100,000 claims, a silo that joins, one that is frozen", clusterClaimsScenario},
		{"cluster-flood", "a flood of addresses that nobody serves", clusterFloodScenario},
		{"pg-writes", "durable writes on PostgreSQL, against the same batches without change rows", pgWritesScenario},
		{"pg-feed", "from a commit to another process's cache, and catching up", pgFeedScenario},
		{"silos", "three processes on PostgreSQL: joins, kills, a rolling restart, frames elsewhere", silosScenario},
		{"start", "a cold serve on an empty folder", startScenario},
	}
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == roleWord {
		if err := runRole(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	only := flag.String("scenario", "", "comma-separated names; empty runs all")
	rounds := flag.Int("rounds", 9, "interleaved rounds a scenario")
	dir := flag.String("results", "results", "folder for the results")
	profile := flag.String("cpuprofile", "", "file for a CPU profile of this process")
	report := flag.String("report", "", "write a page of the results to this file and measure nothing")
	flag.Parse()
	if *report != "" {
		if err := writeReport(*dir, *report); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed := false
	for _, s := range scenarios() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), s.name) {
			continue
		}
		r, err := s.run(ctx, *rounds)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
			failed = true
			continue
		}
		r.print()
		if err := r.write(*dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

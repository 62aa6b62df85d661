package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "phases or groups to run, separated by commas; empty is everything but web-build")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(verify(ctx, *only))
}

// verify runs the chosen phases and returns the exit code.
func verify(ctx context.Context, only string) int {
	chosen, err := choose(phases(), only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		return 2
	}
	began := time.Now()
	r := &runner{env: append(os.Environ(), "NO_COLOR=1"), installed: map[string]bool{}}
	var failed []string
	for _, p := range chosen {
		started := time.Now()
		fmt.Printf("== %s\n", p.name)
		err := p.run(ctx, r)
		took := time.Since(started).Round(100 * time.Millisecond)
		if err != nil {
			failed = append(failed, p.name)
			fmt.Printf("== %s FAILED after %v: %v\n", p.name, took, err)
			if p.needed || ctx.Err() != nil {
				break
			}
			continue
		}
		fmt.Printf("== %s ok, %v\n", p.name, took)
	}
	total := time.Since(began).Round(time.Second)
	if len(failed) > 0 {
		fmt.Printf("FAILED after %v: %s\n", total, strings.Join(failed, ", "))
		return 1
	}
	fmt.Printf("all %d phases ok in %v\n", len(chosen), total)
	return 0
}

package main

import (
	"context"
	"os"
	"testing"
)

// TestMain lets this binary run as the program itself, for tests that need a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv(programEnv) == "1" {
		os.Exit(run(context.Background(), os.Args[1:], std{os.Stdin, os.Stdout, os.Stderr}))
	}
	os.Exit(m.Run())
}

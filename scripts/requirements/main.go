package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const target = "docs/requirements.md"

func main() {
	check := flag.Bool("check", false, "compare "+target+" instead of writing it")
	flag.Parse()
	os.Exit(run(".", *check, os.Stdout, os.Stderr))
}

// run writes or compares the page of the module in dir; it returns the exit code.
func run(dir string, check bool, out, errs io.Writer) int {
	rules, err := parseRules(rulesText)
	if err != nil {
		fmt.Fprintln(errs, "requirements:", err)
		return 2
	}
	proofs, err := scan(os.DirFS(dir))
	if err != nil {
		fmt.Fprintln(errs, "requirements:", err)
		return 2
	}
	want := page(rules, proofs)
	file := dir + "/" + target
	if !check {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			fmt.Fprintln(errs, "requirements:", err)
			return 2
		}
		fmt.Fprintln(out, "requirements: wrote", target)
		return 0
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != want {
		fmt.Fprintf(errs, "requirements: %s is not what the tests say: run `make requirements` and commit it\n", target)
		return 1
	}
	fmt.Fprintln(out, "requirements:", target, "is current")
	return 0
}

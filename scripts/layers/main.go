package main

import "os"

func main() {
	os.Exit(run(os.DirFS("."), os.Stdout, os.Stderr))
}

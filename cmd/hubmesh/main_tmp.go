package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

var version = "dev"

func usage(err error) error { return err }

func main() {
	var root struct {
		Serve serveCmd `cmd:""`
	}
	k := kong.Parse(&root)
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

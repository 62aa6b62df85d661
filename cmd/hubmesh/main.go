package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// version is the program's; a release sets it with -ldflags "-X main.version=…".
var version = "dev"

// root is the command line: one field a verb.
type root struct {
	Serve    serveCmd    `cmd:"" help:"Serve a mesh from a data folder."`
	Import   importCmd   `cmd:"" help:"Import a folder of node files and follow it to its end."`
	Get      getCmd      `cmd:"" help:"Print a node."`
	Create   createCmd   `cmd:"" help:"Create a node."`
	Put      putCmd      `cmd:"" help:"Create a node, or replace every writable field."`
	Patch    patchCmd    `cmd:"" help:"Merge an RFC 7396 patch over a node."`
	Delete   deleteCmd   `cmd:"" help:"Delete a node, or a subtree."`
	Query    queryCmd    `cmd:"" help:"Print the nodes that match a query."`
	Watch    watchCmd    `cmd:"" help:"Print a node and then each change of it, a line each, until interrupted."`
	Versions versionsCmd `cmd:"" help:"Print the history of a node, newest first."`
	Why      whyCmd      `cmd:"" help:"Print what the server knows about the hub at an address."`
	Cluster  clusterCmd  `cmd:"" help:"Print what the silos of a cluster say of themselves."`
	Demo     demoCmd     `cmd:"" help:"Run three silos in this process, with a page to type into while they are killed and frozen."`
	Token    tokenCmd    `cmd:"" help:"Make, list and revoke API tokens."`
	Bench    benchCmd    `cmd:"" help:"Make data to measure with."`
	Version  versionCmd  `cmd:"" help:"Print the version of this program."`
}

// std are the streams of the process.
type std struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], std{os.Stdin, os.Stdout, os.Stderr}))
}

// noFlag stands before a term of a query that begins with a minus while the flags are read. No argument of
// a program holds it.
const noFlag = "\x00"

// minus lets a term of a query begin with a minus: the verb has no flag of one letter but -h.
func minus(args []string) []string {
	if len(args) == 0 || args[0] != "query" {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			out[i] = noFlag + arg
		}
	}
	return out
}

// exit carries the code of a verb that ends early, such as --help.
type exit int

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, s std) (code int) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	defer func() {
		if fault := recover(); fault != nil {
			early, ok := fault.(exit)
			if !ok {
				panic(fault)
			}
			code = int(early)
		}
	}()
	parser, err := kong.New(&root{},
		kong.Name("hubmesh"),
		kong.Description("A mesh of live, versioned nodes. Start one with `hubmesh serve`.\n\n"+exitHelp),
		kong.UsageOnError(),
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
	)
	if err != nil {
		fmt.Fprintln(s.err, "hubmesh:", err)
		return exitFailed
	}
	if i := slices.IndexFunc(args, func(a string) bool { return !utf8.ValidString(a) }); i >= 0 {
		// Written into JSON it would become another text, and name another node.
		fmt.Fprintf(s.err, "hubmesh: argument %d, %q, is not valid UTF-8\n", i+1, args[i])
		return exitUsage
	}
	verb, err := parser.Parse(minus(args))
	if err != nil {
		fmt.Fprintf(s.err, "hubmesh: %s\n  `hubmesh --help` lists the verbs, `hubmesh VERB --help` its flags\n", plainLines(err.Error()))
		return exitUsage
	}
	if err := verb.Run(); err != nil && !errors.Is(err, errInterrupted) {
		explain(s.err, err)
		return codeOf(err)
	}
	return exitOK
}

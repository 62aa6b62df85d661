package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hubmesh/hubmesh/docs"
	"github.com/hubmesh/hubmesh/internal/demo"
)

type demoCmd struct {
	Listen         string `help:"Address to listen on." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Data           folder `help:"Data folder. Default: a temporary one that is removed at the end." placeholder:"DIR"`
	AdminTokenFile folder `help:"File for the Admin token. Default: admin-token in the data folder." placeholder:"FILE"`
	LogLevel       string `help:"Least level of the silos' log lines that are printed: debug, info, warn or error; the page shows them in any case." default:"error" enum:"debug,info,warn,error"`
}

// demoShutdown bounds the wait for requests at the end.
const demoShutdown = 2 * time.Second

// Run runs three silos until the process is told to stop.
func (c *demoCmd) Run(ctx context.Context, s std) error {
	if _, err := hostPort("--listen", c.Listen, "127.0.0.1:8080"); err != nil {
		return usage(err)
	}
	collectLessOften()
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return usage(err)
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return listenError(c.Listen, err)
	}
	d, err := demo.New(demo.Options{Dir: string(c.Data), TokenFile: string(c.AdminTokenFile), Version: version, Guide: docs.Files(),
		Log: slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: level})})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: d.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	url := "http://" + reachable(l.Addr())
	fmt.Fprintf(s.out, "listening on %s\nthree silos:", url)
	names, urls := d.Silos()
	for i := range names {
		fmt.Fprintf(s.out, " %s %s", names[i], urls[i])
	}
	fmt.Fprintf(s.out, "\nAdmin token in %s\nopen %s%s\n", d.TokenFile(), url, d.LoginPath())
	select {
	case err = <-served:
		err = fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	closed := d.Close()
	bound, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), demoShutdown, errors.New("requests took longer than the end of the demonstration"))
	defer cancel()
	if server.Shutdown(bound) != nil {
		closed = errors.Join(closed, server.Close())
	}
	return errors.Join(err, closed)
}

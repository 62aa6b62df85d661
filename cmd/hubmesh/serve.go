package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/docs"
)

// testingEnv is the environment variable without which faults are refused.
const testingEnv = "HUBMESH_TESTING"

type serveCmd struct {
	Data           folder  `help:"Data folder: the database and the content files." default:"./hubmesh-data"`
	Postgres       *string `help:"URL of a PostgreSQL database that holds the nodes instead of the data folder, for any number of servers: postgres://user:password@host/database. The content files stay in the data folder, which the servers then share." placeholder:"URL" env:"HUBMESH_POSTGRES"`
	Listen         string  `help:"Address to listen on." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	cluster        `embed:""`
	AdminTokenFile folder         `help:"File for the Admin token, written at the first start with mode 0600. Default: admin-token in the data folder." placeholder:"FILE"`
	Import         []folder       `help:"Import a folder of node files at this start; may repeat." placeholder:"DIR" sep:"none"`
	Content        folder         `help:"Folder of content files that goes with --import." placeholder:"DIR"`
	Into           string         `help:"Path below which --import puts the nodes." placeholder:"PATH"`
	PublicRead     bool           `help:"Let visitors without credentials read everything but assignments."`
	Memory         bool           `help:"Keep nothing: the data is gone when the process ends."`
	NodeBytes      byteCount      `help:"Largest node, in bytes of JSON." default:"1MiB"`
	JSONDepth      int            `help:"Deepest nesting of a content." default:"200" name:"json-depth"`
	BodyBytes      byteCount      `help:"Largest JSON body of a request, in bytes." default:"8MiB"`
	HeldBytes      byteCount      `help:"Most bytes of bodies and answers on their way at a time." default:"1GiB"`
	History        int            `help:"Versions of a node that are kept." default:"1000"`
	Drain          *time.Duration `help:"How long a server that is told to stop still answers while /ready says no, so that what stands in front of it sends requests elsewhere. Default: 1s for a silo, else 0." placeholder:"DURATION"`
	LogLevel       string         `help:"Least level of log lines: debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
	Fault          []string       `help:"For tests, with HUBMESH_TESTING=1: start:PATH=DURATION delays the start of a node's hub." placeholder:"FAULT"`
}

// Validate refuses flags that can not be meant, before anything is made.
func (c *serveCmd) Validate() error {
	for _, n := range []struct {
		flag  string
		value int64
	}{{"--node-bytes", int64(c.NodeBytes)}, {"--json-depth", int64(c.JSONDepth)}, {"--body-bytes", int64(c.BodyBytes)}, {"--held-bytes", int64(c.HeldBytes)}, {"--history", int64(c.History)}} {
		if n.value < 1 {
			return fmt.Errorf("%s is %d; want 1 or more", n.flag, n.value)
		}
	}
	_, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--listen '%s': want HOST:PORT, such as 127.0.0.1:8080", c.Listen)
	}
	for _, dir := range c.Import {
		if err := dir.check(); err != nil {
			return fmt.Errorf("--import: %w", err)
		}
	}
	if c.Postgres != nil && *c.Postgres == "" {
		// A variable that is not set in a script or a unit file must not lead to another database.
		return errors.New("--postgres, or HUBMESH_POSTGRES, is empty: give a URL such as postgres://user:password@host/database, or leave the flag out and unset the variable to keep the nodes in the data folder")
	}
	if c.Postgres != nil && c.Memory {
		return errors.New("--postgres and --memory exclude each other")
	}
	if err := c.cluster.check(c.postgres()); err != nil {
		return err
	}
	if c.Content != "" {
		if err := c.Content.check(); err != nil {
			return fmt.Errorf("--content: %w", err)
		}
	}
	return nil
}

// postgres is the URL of the database; "" where the nodes are in the data folder or in memory.
func (c *serveCmd) postgres() string {
	if c.Postgres == nil {
		return ""
	}
	return *c.Postgres
}

// Run serves until the process is told to stop.
func (c *serveCmd) Run(ctx context.Context, s std) error {
	collectLessOften()
	delay, err := faults(c.Fault)
	if err != nil {
		return usage(err)
	}
	var level slog.LevelVar
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return usage(err)
	}
	log := slog.New(slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: &level}))
	silo, err := c.cluster.options()
	if err != nil {
		return err
	}
	// The port first: a process that can not listen must not open the data.
	l, err := hubmesh.Listen(ctx, c.Listen)
	if err != nil {
		return listenError(c.Listen, err)
	}
	o := hubmesh.Options{Dir: string(c.Data), Postgres: c.postgres(), Logger: log, NodeBytes: int(c.NodeBytes), Depth: c.JSONDepth, BodyBytes: int64(c.BodyBytes), HeldBytes: int64(c.HeldBytes), History: c.History, StartDelay: delay, Cluster: silo}
	if c.Memory {
		o.Dir = ""
	}
	m, err := hubmesh.New(o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	serveErr := c.serve(ctx, s, m, l, log)
	if serveErr != nil && ctx.Err() == nil {
		level.Set(slog.LevelError) // a start that has failed is told by its error, not by how it is undone
	}
	bound, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 45*time.Second, errors.New("the shutdown took more than 45 s"))
	defer cancel()
	return errors.Join(serveErr, m.Close(bound))
}

func (c *serveCmd) serve(ctx context.Context, s std, m *hubmesh.Mesh, l net.Listener, log *slog.Logger) error {
	file := string(c.AdminTokenFile)
	if file == "" {
		file = filepath.Join(string(c.Data), "admin-token")
		if _, err := os.Stat(filepath.Join(string(c.Data), "hubmesh.db")); c.Memory && errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(file) // of an earlier mesh in memory, which is gone; what can not be removed is refused below
		}
	}
	created, err := m.AdminToken(ctx, file)
	var withdrawn *hubmesh.WithdrawnError
	switch {
	case errors.As(err, &withdrawn):
		log.Warn("the Admin token file makes nobody an Admin", "file", file, "reason", err.Error())
	case err != nil:
		return errors.Join(err, l.Close())
	}
	if c.PublicRead {
		m.PublicRead()
	}
	if err := m.BootGuide(ctx, docs.Files()); err != nil {
		log.Warn("the guide was not imported", "error", err)
	}
	for _, dir := range c.Import {
		if _, err := m.BootImportFolder(string(dir), c.Into, string(c.Content)); err != nil {
			return errors.Join(fmt.Errorf("--import: %w", err), l.Close())
		}
	}
	return m.Serve(ctx, l, hubmesh.ServeOptions{Version: version, Drain: c.drain(), Ready: func(addr net.Addr) {
		c.greet(s.out, m, addr, file, created, withdrawn)
	}})
}

// What --drain may be, and what it is for a silo that is not told.
const (
	siloDrain = time.Second
	maxDrain  = 5 * time.Minute
)

func (c *serveCmd) drain() time.Duration {
	switch {
	case c.Drain != nil:
		return *c.Drain
	case c.ClusterListen != "":
		return siloDrain
	}
	return 0
}

// greet says where the mesh is and how to get in. The first line is what scripts wait for.
func (c *serveCmd) greet(w io.Writer, m *hubmesh.Mesh, addr net.Addr, file string, created bool, withdrawn *hubmesh.WithdrawnError) {
	url := "http://" + reachable(addr)
	fmt.Fprintf(w, "listening on %s\n", url)
	code, err := m.LoginCode()
	switch {
	case err == nil:
		fmt.Fprintf(w, "sign in (once, within 10 minutes): %s/login?code=%s\n", url, code)
	case withdrawn != nil:
		fmt.Fprintf(w, "no sign-in link: %v\n", withdrawn)
	default:
		fmt.Fprintf(w, "no sign-in link: %v\n", err)
	}
	if created {
		fmt.Fprintf(w, "Admin token written to %s\n", file)
	}
}

// reachable is the listener's address as a browser on this machine can use it.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func listenError(address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use by another process; stop it or pass another --listen HOST:PORT", address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("this user may not listen on %s; ports below 1024 need more rights: pass another --listen HOST:PORT", address)
	}
	return fmt.Errorf("cannot listen on '%s': %w; pass --listen HOST:PORT", address, err)
}

// faults reads --fault flags. They are refused outside tests.
func faults(list []string) (func(path string) time.Duration, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if os.Getenv(testingEnv) != "1" {
		return nil, fmt.Errorf("--fault is for tests: set %s=1 to use it", testingEnv)
	}
	delays := map[string]time.Duration{}
	for _, f := range list {
		rest, ok := strings.CutPrefix(f, "start:")
		path, text, ok2 := strings.Cut(rest, "=")
		d, err := time.ParseDuration(text)
		if !ok || !ok2 || path == "" || err != nil || d < 0 {
			return nil, fmt.Errorf("--fault '%s': want start:PATH=DURATION, such as start:acme/page=15s", f)
		}
		delays[strings.Trim(path, "/")] = d
	}
	return func(path string) time.Duration { return delays[path] }, nil
}

// collectPercent is how much the heap may grow between two collections, in percent of what lives. The
// heap of a small mesh is a few megabytes, and writes would have it collected tens of times a second.
const collectPercent = 200

// collectLessOften sets collectPercent, unless the operator has set GOGC.
func collectLessOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
}

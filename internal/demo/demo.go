package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/cluster/memtable"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// NodePath is the node that is typed into.
const NodePath = "Demo/Page"

// firstText is what stands in it.
const firstText = `# Type here

Kill the silo that serves this page. Another one takes it over, and the text goes on.
`

// Options configure a demonstration.
type Options struct {
	// Dir is the data folder; empty is a temporary one, removed at Close.
	Dir string
	// TokenFile gets the Admin token; empty is a file in the data folder.
	TokenFile string
	Version   string
	Guide     fs.FS        // imported at the first start
	Log       slog.Handler // of the silos' log lines
}

// Demo is three silos and the front door before them. All methods are safe for concurrent use. Close it.
type Demo struct {
	opts    Options
	dir     string // removed at Close, "" for one of the user's
	content string
	secret  string // signs in and acts
	token   string

	store  store.Store
	table  *memtable.Table
	clock  *transport.Clock
	net    *transport.Network
	events *events
	silos  []*silo
	front  *front

	mu   sync.Mutex
	cuts map[[2]string]bool

	work   sync.WaitGroup
	ending chan struct{}
	end    sync.Once
}

// New starts three silos; it returns once they have joined each other.
func New(o Options) (d *Demo, err error) {
	d = &Demo{opts: o, secret: rand.Text(), table: memtable.New(), clock: transport.NewClock(), events: &events{}, cuts: map[[2]string]bool{}, ending: make(chan struct{})}
	d.net = transport.NewNetwork(d.clock, mathrand.Uint64())
	// A network of one rack. Its rare slow frames are for tests.
	d.net.SetDelay(func(r *mathrand.Rand, _, _ string) time.Duration {
		return 50*time.Microsecond + time.Duration(r.Int64N(int64(100*time.Microsecond)))
	})
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
			d = nil
		}
	}()
	if o.Log == nil {
		d.opts.Log = slog.DiscardHandler
	}
	dir := o.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "hubmesh-demo-"); err != nil {
			return d, err
		}
		d.dir = dir
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return d, fmt.Errorf("data folder: %w", err)
	}
	d.content = filepath.Join(dir, "content")
	if d.opts.TokenFile == "" {
		d.opts.TokenFile = filepath.Join(dir, "admin-token")
	}
	if d.store, err = sqlite.Open(context.Background(), sqlite.Options{File: filepath.Join(dir, "hubmesh.db"), Log: slog.New(d.opts.Log)}); err != nil {
		return d, err
	}
	for i := range 3 {
		d.silos = append(d.silos, &silo{d: d, name: fmt.Sprintf("s%d", i+1), addr: "127.0.0.1:0"})
	}
	d.front = newFront(d)
	if err := d.silos[0].start(); err != nil {
		return d, err
	}
	if err := d.fill(d.silos[0].life.mesh); err != nil {
		return d, err
	}
	var joining sync.WaitGroup
	joined := make([]error, len(d.silos))
	for i, s := range d.silos[1:] {
		joining.Go(func() { joined[i] = s.start() })
	}
	joining.Wait()
	return d, errors.Join(joined...)
}

// fill sees to it that there is somebody who may, the guide, and the node that is typed into.
func (d *Demo) fill(m *hubmesh.Mesh) error {
	ctx := hubmesh.AsSystem(context.Background())
	if _, err := m.AdminToken(ctx, d.opts.TokenFile); err != nil {
		return err // also where the first Admin was withdrawn: the demonstration signs in as nobody else
	}
	text, err := os.ReadFile(d.opts.TokenFile)
	if err != nil {
		return err
	}
	d.token = strings.TrimSpace(string(text))
	if d.opts.Guide != nil {
		if err := m.BootGuide(ctx, d.opts.Guide); err != nil {
			return err
		}
	}
	space, _, _ := strings.Cut(NodePath, "/")
	_, err = m.Create(ctx, space, hubmesh.Space, map[string]string{})
	if err != nil && !errors.As(err, new(*store.ExistsError)) {
		return err
	}
	_, err = m.Create(ctx, NodePath, hubmesh.Markdown, map[string]string{"$type": "Markdown", "markdown": firstText})
	if err != nil && !errors.As(err, new(*store.ExistsError)) {
		return err
	}
	return nil
}

// Close ends the silos in order, and everything else.
func (d *Demo) Close() error {
	var errs []error
	d.end.Do(func() {
		close(d.ending)
		for i := len(d.silos) - 1; i >= 0; i-- {
			s := d.silos[i]
			if s.leave() != nil {
				_ = s.kill() // one that is frozen; others have ended
			}
			s.mu.Lock()
			l := s.life
			s.mu.Unlock()
			if l != nil {
				<-l.ended
			}
		}
		if d.front != nil {
			d.front.close()
		}
		d.work.Wait()
		d.clock.Close()
		if d.store != nil {
			errs = append(errs, d.store.Close())
		}
		if d.dir != "" {
			errs = append(errs, os.RemoveAll(d.dir))
		}
	})
	return errors.Join(errs...)
}

// TokenFile is where the Admin token is.
func (d *Demo) TokenFile() string { return d.opts.TokenFile }

// Silos lists the silos' own HTTP servers by name.
func (d *Demo) Silos() (names, urls []string) {
	for _, s := range d.silos {
		s.mu.Lock()
		names, urls = append(names, s.name), append(urls, "http://"+s.addr)
		s.mu.Unlock()
	}
	return names, urls
}

func (d *Demo) find(name string) *silo {
	for _, s := range d.silos {
		if s.name == name {
			return s
		}
	}
	return nil
}

// cut cuts the link between two silos in both directions, or heals it.
func (d *Demo) cut(a, b string, cut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pair := [2]string{min(a, b), max(a, b)}
	switch {
	case cut == d.cuts[pair]:
	case cut:
		d.net.CutBoth(a, b)
		d.cuts[pair] = true
	default:
		d.net.HealBoth(a, b)
		delete(d.cuts, pair)
	}
}

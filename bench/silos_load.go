package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// rollLoad asks a town at a rate, through whoever is ready.
type rollLoad struct {
	t     *town
	nodes []string
	acked []atomic.Int64 // the greatest number that was acknowledged, by node

	mu     sync.Mutex
	took   []float64 // ms
	failed []string
}

// balancer sends requests to a silo that is ready, and to the next one where none was reached, as a load balancer
// with health checks does.
type balancer struct {
	t    *town
	next http.RoundTripper
	mu   sync.Mutex
	in   []string // hosts that were ready when they were asked last
}

func (b *balancer) check(ctx context.Context) {
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	quick := &http.Client{Timeout: 500 * time.Millisecond}
	for {
		b.t.mu.Lock()
		var urls []string
		for _, s := range b.t.silos {
			urls = append(urls, s.url)
		}
		b.t.mu.Unlock()
		var in []string
		for _, url := range urls {
			resp, err := quick.Get(url + "/ready")
			if err != nil {
				continue
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				in = append(in, strings.TrimPrefix(url, "http://"))
			}
		}
		b.mu.Lock()
		b.in = in
		b.mu.Unlock()
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	in := append([]string{}, b.in...)
	b.mu.Unlock()
	rand.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	err := errors.New("no silo is ready")
	for _, host := range in {
		one := r.Clone(r.Context())
		one.URL.Host = host
		if r.GetBody != nil {
			if one.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		var resp *http.Response
		if resp, err = b.next.RoundTrip(one); err == nil {
			return resp, nil
		}
		var dial *net.OpError
		if !errors.As(err, &dial) || dial.Op != "dial" {
			return nil, err
		}
	}
	return nil, err
}

// run asks until ctx ends. What is under way then is waited for.
func (l *rollLoad) run(ctx context.Context) {
	any := l.t.silos["a"]
	b := &balancer{t: l.t, next: &http.Transport{MaxIdleConnsPerHost: 64}, in: []string{strings.TrimPrefix(any.url, "http://")}}
	var work sync.WaitGroup
	defer work.Wait()
	checking, stop := context.WithCancel(context.Background())
	defer stop()
	work.Go(func() { b.check(checking) })
	c, err := client.New(client.Options{Server: any.url, Token: any.token, HTTP: &http.Client{Transport: b}})
	if err != nil {
		panic(err) // the address is what the silo has printed
	}
	every := time.NewTicker(time.Second / siloRate)
	defer every.Stop()
	busy := make([]atomic.Bool, len(l.nodes)) // one writer a node: its numbers grow
	for ctx.Err() == nil {
		<-every.C
		work.Go(func() {
			at := rand.IntN(len(l.nodes))
			began := time.Now()
			var err error
			if rand.Float64() < siloWrites && busy[at].CompareAndSwap(false, true) {
				n := l.acked[at].Load() + 1
				if _, err = c.Patch(context.Background(), l.nodes[at], fmt.Appendf(nil, `{"content":{"n":%d}}`, n), client.If{}); err == nil {
					l.acked[at].Store(n)
				}
				busy[at].Store(false)
			} else {
				_, err = c.Get(context.Background(), l.nodes[at])
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.took = append(l.took, ms(time.Since(began)))
			if err != nil {
				l.failed = append(l.failed, err.Error())
			}
		})
	}
}

// missing counts acknowledged writes that are not there.
func (l *rollLoad) missing(ctx context.Context) (n int, err error) {
	c := l.t.silos["b"].client()
	for i, path := range l.nodes {
		got, err := c.Get(ctx, path)
		if err != nil {
			return n, err
		}
		var have struct{ N int64 }
		if err := json.Unmarshal(got.Content, &have); err != nil {
			return n, err
		}
		if have.N < l.acked[i].Load() {
			n++
		}
	}
	return n, nil
}

// frames measures from the acknowledgement of a write at one silo to its frame at a watcher of another one.
func frames(ctx context.Context, r *Result, t *town, url string) error {
	a, c := t.silos["a"], t.silos["c"]
	nodes, err := makeNodes(ctx, a, "frames", 1)
	if err != nil {
		return err
	}
	if err := touch(ctx, a, nodes); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan client.Event, 16)
	at := make(chan time.Time, 16)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() {
		_ = c.client().Watch(ctx, nodes[0], client.WatchOptions{}, func(e client.Event) error {
			at <- time.Now()
			seen <- e
			return nil
		})
	})
	await := func() (client.Event, time.Time, error) {
		select {
		case when := <-at:
			return <-seen, when, nil
		case <-time.After(townPatience):
			return client.Event{}, time.Time{}, errors.New("a frame did not come")
		}
	}
	if _, _, err := await(); err != nil {
		return err
	}
	cl := a.client()
	var took []float64
	for i := range siloCommits {
		got, err := cl.Patch(ctx, nodes[0], fmt.Appendf(nil, `{"content":{"n":%d}}`, i+1), client.If{})
		acked := time.Now()
		if err != nil {
			return err
		}
		e, when, err := await()
		if err != nil {
			return err
		}
		if e.Version != got.Version {
			return fmt.Errorf("version %d was written and %d came", got.Version, e.Version)
		}
		took = append(took, max(0, ms(when.Sub(acked))))
		time.Sleep(10 * time.Millisecond)
	}
	r.add("commit to a frame elsewhere, p50", quantile(took, 0.5))
	r.add("commit to a frame elsewhere, p99", quantile(took, 0.99))
	bare, err := bareNotification(ctx, url)
	if err != nil {
		return err
	}
	hop, err := bareHop()
	if err != nil {
		return err
	}
	r.add("bare notification and one hop, p50", quantile(bare, 0.5)+quantile(hop, 0.5))
	return nil
}

// bareHop measures a line there and back on a connection of this machine, and takes half of it.
func bareHop() (took []float64, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	lines := bufio.NewReader(c)
	for range siloCommits {
		began := time.Now()
		if _, err := c.Write([]byte("a frame\n")); err != nil {
			return nil, err
		}
		if _, err := lines.ReadString('\n'); err != nil {
			return nil, err
		}
		took = append(took, ms(time.Since(began))/2)
		time.Sleep(time.Millisecond)
	}
	return took, nil
}

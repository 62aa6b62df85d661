package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

const importNodes = 20_000

// generated is a folder of generated node files, made by the product's own verb.
func generated(ctx context.Context, bin, dir string, nodes int) error {
	cmd := exec.CommandContext(ctx, bin, "bench", "gen", "--nodes", fmt.Sprint(nodes), "--bytes", "1500", dir)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// importAll runs one import over the API and returns how long it took.
func importAll(ctx context.Context, c *client.Client, dir string) (time.Duration, error) {
	began := time.Now()
	path, err := c.StartImport(ctx, client.Import{Source: dir})
	if err != nil {
		return 0, err
	}
	ended := errors.New("ended")
	err = c.Watch(ctx, path, client.WatchOptions{}, func(e client.Event) error {
		var a struct{ Status string }
		if err := json.Unmarshal(e.Node.Content, &a); err != nil {
			return err
		}
		switch a.Status {
		case "Running", "":
			return nil
		case "Succeeded":
			return ended
		}
		return fmt.Errorf("the import ended as %s: %s", a.Status, e.Node.Content)
	})
	if !errors.Is(err, ended) {
		return 0, err
	}
	return time.Since(began), nil
}

func importScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("import", "nodes a second", rounds)
	tmp, bin, clean, err := workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer clean()
	src := filepath.Join(tmp, "src")
	if err := generated(ctx, bin, src, importNodes); err != nil {
		return nil, err
	}
	for range max(3, rounds/3) {
		dir, err := os.MkdirTemp(tmp, "run-")
		if err != nil {
			return nil, err
		}
		s, err := serve(bin, dir)
		if err != nil {
			return nil, err
		}
		if err := oneImport(ctx, r, s, src); err != nil {
			s.stop()
			return nil, err
		}
		if err := s.stop(); err != nil {
			return nil, err
		}
		os.RemoveAll(dir)
	}
	r.metric("nodes_per_s", r.median("import"))
	r.goal("nodes_per_s", ">=", 2000)
	r.ratio("rerun/import time", "unchanged re-run, s", "import, s")
	r.goal("rerun/import time", "<=", 0.3)
	r.metric("reads_p99_ms", r.median("reads beside, p99 ms"))
	r.goal("reads_p99_ms", "<=", 10)
	return r, nil
}

func oneImport(ctx context.Context, r *Result, s *server, src string) error {
	c, err := client.New(client.Options{Server: s.url, Token: s.token})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	var took []float64
	var wg sync.WaitGroup
	wg.Go(func() {
		h := &http.Client{}
		tick := time.NewTicker(5 * time.Millisecond) // 200 reads a second
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				t := time.Now()
				if err := s.do(h, "GET", "/api/nodes/Guide/api", ""); err == nil {
					took = append(took, ms(time.Since(t)))
				}
			}
		}
	})
	first, err := importAll(ctx, c, src)
	close(stop)
	wg.Wait()
	if err != nil {
		return err
	}
	again, err := importAll(ctx, c, src)
	if err != nil {
		return err
	}
	r.add("import", importNodes/first.Seconds())
	r.add("import, s", first.Seconds())
	r.add("unchanged re-run, s", again.Seconds())
	r.add("reads beside, p99 ms", quantile(took, 0.99))
	return nil
}

// coldScenario reads files of nodes whose hubs have never run, idle and beside an import.
func coldScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("cold", "ms of a first content read", rounds)
	tmp, bin, clean, err := workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer clean()
	src, big := filepath.Join(tmp, "src"), filepath.Join(tmp, "big")
	if err := generated(ctx, bin, src, 3000); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin, "bench", "gen", "--nodes", fmt.Sprint(importNodes), "--space", "big", big)
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	s, err := serve(bin, tmp)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	c, err := client.New(client.Options{Server: s.url, Token: s.token})
	if err != nil {
		return nil, err
	}
	if _, err := importAll(ctx, c, src); err != nil {
		return nil, err
	}
	h := &http.Client{}
	if err := s.do(h, "PUT", "/api/files/bench/content/d0000/x.txt", "x"); err != nil {
		return nil, err
	}
	if err := s.do(h, "PATCH", "/api/nodes/bench/_Content/content", `{"content":{"isInherited":true}}`); err != nil {
		return nil, err
	}
	next := 0
	read := func(name string, n int) error {
		var took []float64
		for range n {
			path := fmt.Sprintf("/api/content/bench/d%04d/n%06d/x.txt", next/500, next)
			file := fmt.Sprintf("/api/files/bench/content/d%04d/n%06d/x.txt", next/500, next)
			if err := s.do(h, "PUT", file, "x"); err != nil {
				return err
			}
			next++
			t := time.Now()
			if err := s.do(h, "GET", path, ""); err != nil {
				return err
			}
			took = append(took, ms(time.Since(t)))
		}
		r.add(name, quantile(took, 0.99))
		return nil
	}
	for range rounds {
		if err := read("idle, p99", 100); err != nil {
			return nil, err
		}
	}
	imported := make(chan error, 1)
	go func() {
		_, err := importAll(ctx, c, big)
		imported <- err
	}()
	running := true
	for running && next < 2900 {
		select {
		case err := <-imported:
			if err != nil {
				return nil, err
			}
			running = false
		default:
			if err := read("during an import, p99", 100); err != nil {
				return nil, err
			}
		}
	}
	if running {
		<-imported
	}
	r.metric("cold_p99_ms", r.median("idle, p99"))
	r.goal("cold_p99_ms", "<=", 20)
	r.metric("cold_during_import_p99_ms", r.median("during an import, p99"))
	r.goal("cold_during_import_p99_ms", "<=", 20)
	return r, nil
}

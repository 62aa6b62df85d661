package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// wire is one connection of a load generator that costs little beside the server: both share the
// processors.
type wire struct {
	conn  net.Conn
	in    *bufio.Reader
	token string
}

func (s *server) dial() (*wire, error) {
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		return nil, err
	}
	return &wire{c, bufio.NewReader(c), s.token}, nil
}

// do sends one request and wants a status below 300.
func (w *wire) do(method, path, body string) error {
	if _, err := fmt.Fprintf(w.conn, "%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, w.token, len(body), body); err != nil {
		return err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return err
}

// hammer sends requests from a number of clients for a second and returns the rate.
func (s *server) hammer(clients int, request func(client, i int) (method, path, body string)) (perSecond float64, err error) {
	var n atomic.Int64
	failed := make(chan error, clients)
	var wg sync.WaitGroup
	began := time.Now()
	end := began.Add(time.Second)
	for c := range clients {
		wg.Go(func() {
			w, err := s.dial()
			if err != nil {
				failed <- err
				return
			}
			defer w.conn.Close()
			for i := 0; time.Now().Before(end); i++ {
				if err := w.do(request(c, i)); err != nil {
					failed <- err
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(n.Load()) / time.Since(began).Seconds(), nil
	}
}

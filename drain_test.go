package hubmesh_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh"
)

// decision 6: unready, then drained
func TestAServerThatDrainsSaysItIsNotReadyAndAnswersUntilTheEnd(t *testing.T) {
	m, err := hubmesh.New(hubmesh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx, l, hubmesh.ServeOptions{Drain: time.Minute}) }()
	get := func(path string) *http.Response {
		t.Helper()
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if got := get("/ready"); got.StatusCode != http.StatusOK || got.Close {
		t.Fatalf("before it is told to stop: %v", got)
	}
	stop()
	for get("/ready").StatusCode == http.StatusOK {
	}
	if got := get("/alive"); got.StatusCode != http.StatusOK || !got.Close {
		t.Errorf("while it drains a request is answered %d and its connection is kept: %v", got.StatusCode, !got.Close)
	}
	l.Close() // as the end of the drain does, and sooner
	if err := <-served; err == nil {
		t.Error("a server whose listener was closed says nothing of it")
	}
}

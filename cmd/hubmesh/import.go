package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

type importCmd struct {
	remote
	Source  folder `arg:"" help:"Folder of node files, on the server's machine."`
	Into    string `help:"Path below which; without it the top-level folders are the partitions." placeholder:"PATH"`
	Content folder `help:"Folder of files that is published as the collection 'content'." placeholder:"DIR"`
	Detach  bool   `help:"Print the activity and leave: do not wait for the end."`
}

// activity is what the content of an activity's node says.
type activity struct {
	Status   string         `json:"status"`
	Message  string         `json:"message"`
	Done     int            `json:"done"`
	Total    int            `json:"total"`
	Counts   map[string]int `json:"counts"`
	Messages []struct {
		Level string `json:"level"`
		Text  string `json:"text"`
		About string `json:"about"`
	} `json:"messages"`
}

// failed is how many node files and content files failed.
func (a activity) failed() int { return a.Counts["failed"] + a.Counts["filesFailed"] }

func (a activity) ended() bool { return a.Status != "" && a.Status != "Running" }

// errEnded stops a watch at the end of the activity.
var errEnded = errors.New("the activity has ended")

// errActivityGone says that nothing more will be heard of the import.
var errActivityGone = errors.New("the activity was deleted")

// cancelWithin bounds the request that asks an activity to stop.
const cancelWithin = 10 * time.Second

var errCancelSlow = errors.New("the server did not take the cancellation in time")

// Run starts the import and follows its activity. An interrupt asks it to stop and waits for its end; a
// second one leaves at once. The exit code is 0 with warnings, and 1 if a node failed.
func (c *importCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	request := client.Import{Source: string(c.Source), Into: c.Into, Content: string(c.Content)}
	path, err := server.StartImport(ctx, request)
	if err != nil {
		return err
	}
	if c.Detach {
		return s.print(map[string]string{"activity": path})
	}
	last, text, err := follow(ctx, server, path, s)
	if errors.Is(err, errActivityGone) {
		if err := s.print(map[string]any{"activity": path, "content": text}); err != nil {
			return err
		}
		return &client.Error{Code: "not_found", Status: http.StatusNotFound, Retry: client.Never,
			Detail: fmt.Sprintf("the activity '%s' was deleted while it ran: how the import ends is not known, this is the last that was seen; import again to bring what is missing", path)}
	}
	if err != nil {
		return err
	}
	if err := s.print(map[string]any{"activity": path, "content": text}); err != nil {
		return err
	}
	switch {
	case last.Status == "Cancelled":
		return errors.New("the import was cancelled; what was imported stays")
	case last.Status == "Failed" || last.failed() > 0:
		if last.failed() == 0 && last.Message != "" {
			return fmt.Errorf("the import ended as %s: %s; run it again, what was imported stays", last.Status, last.Message)
		}
		return fmt.Errorf("the import ended as %s: %d failed", last.Status, last.failed())
	}
	return nil
}

// follow shows progress until the activity has ended.
func follow(ctx context.Context, server *client.Client, path string, s std) (last activity, text json.RawMessage, err error) {
	watching, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(s.err, "\nhubmesh: asking the import to stop; interrupt again to leave it")
		asking, done := context.WithTimeoutCause(watching, cancelWithin, errCancelSlow)
		defer done()
		if _, err := server.Patch(asking, path, []byte(`{"content":{"requestedStatus":"Cancelled"}}`), client.If{}); err != nil && watching.Err() == nil {
			explain(s.err, err)
			leave()
		}
	})
	defer stop()
	show := progress{w: s.err, live: terminal(s.err)}
	err = server.Watch(watching, path, following(s), func(e client.Event) error {
		if e.Kind == client.Deleted {
			return errActivityGone
		}
		last, text = activity{}, e.Node.Content
		if len(e.Node.Content) > 0 {
			if err := json.Unmarshal(e.Node.Content, &last); err != nil {
				return fmt.Errorf("the activity is not what an import writes: %w", err)
			}
		}
		show.update(last)
		if last.ended() {
			return errEnded
		}
		return nil
	})
	if errors.Is(err, errEnded) {
		err = nil
	}
	return last, text, err
}

// progress shows an activity: a line that changes on a terminal, and each warning and error once.
type progress struct {
	w     io.Writer
	live  bool
	shown int
}

func (p *progress) update(a activity) {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	for _, m := range a.Messages[min(p.shown, len(a.Messages)):] {
		if m.Level != "info" {
			about := m.About
			if about != "" {
				about += ": "
			}
			fmt.Fprintf(p.w, "%s: %s%s\n", plain(m.Level), plain(about), plain(m.Text))
		}
	}
	p.shown = len(a.Messages)
	if a.ended() {
		fmt.Fprintf(p.w, "%s: %s\n", plain(a.Status), plain(a.Message))
		return
	}
	if p.live {
		fmt.Fprintf(p.w, "%d/%d %s", a.Done, a.Total, plain(a.Message))
	}
}

// terminal tells whether a stream is a person's.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

package content

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// data §6, issue 4: an upload of one process outlives the start of another one on the same folder
func TestAStartLeavesTheUploadsOfOtherProcessesAlone(t *testing.T) {
	for _, shared := range []bool{true, false} { // without: the control
		r := newRig(t, nil)
		body, feed := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			_, _, err := r.content.Put(r.admin, "acme", "content", "slow.txt", body)
			ended <- err
		}()
		if _, err := io.WriteString(feed, "first, "); err != nil { // it is being written
			t.Fatal(err)
		}
		old := filepath.Join(r.content.root.Name(), uploadsDir, "left")
		if err := os.WriteFile(old, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(old, time.Time{}, time.Now().Add(-abandonedAfter-time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := prepare(r.content.root, shared); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(old); !os.IsNotExist(err) {
			t.Errorf("shared %v: what nobody writes any more is still there: %v", shared, err)
		}
		if _, err := io.WriteString(feed, "then"); err != nil {
			t.Fatal(err)
		}
		if err := feed.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; (err == nil) != shared {
			t.Errorf("shared %v: the upload ends with %v", shared, err)
		}
		if text, err := r.read(r.admin, "acme/content/slow.txt"); shared && (err != nil || text != "first, then") {
			t.Errorf("%q %v", text, err)
		}
		r.release()
	}
}

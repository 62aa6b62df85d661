package e2e_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// long tells whether faults may take as long as they do in life.
func long() bool { return os.Getenv("HUBMESH_SOAK") == "1" }

// longer is how long a fault takes.
func longer(short, inLife time.Duration) time.Duration {
	if long() {
		return inLife
	}
	return short
}

// speak says something to an address and hangs up once the other side has, or has had time to.
func speak(addr string, said []byte) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		return err
	}
	_, _ = c.Write(said) // the other side may have hung up already
	_, _ = io.Copy(io.Discard, c)
	return nil
}

// unready is what a silo waits for, "" when it is ready.
func (p *silo) unready() (string, error) {
	resp, err := http.Get(p.url + "/ready")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	if resp.StatusCode == http.StatusOK {
		return "", err
	}
	return b.String(), err
}

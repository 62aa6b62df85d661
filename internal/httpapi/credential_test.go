package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// AC-R1
// A stream ends as soon as its credential counts no more, and nothing is delivered after that: the
// watcher's next frame is not taken. A stream of another caller goes on.
func TestAStreamEndsWhenItsCredentialDoes(t *testing.T) {
	for name, target := range map[string]string{"watch": "/api/watch/acme/a", "live": "/api/live?node=acme/a"} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(doc("acme/a", 3))
			m.pass = &pass{over: make(chan struct{}), followed: make(chan struct{}, 2)}
			_, base := serve(t, m)
			visitor := listen(t, base, target)
			visitor.want(": open")
			visitor.want("event: full")
			l := listen(t, base, target, "Authorization", "Bearer bob")
			l.want(": open")
			l.want("event: full")
			close(m.pass.over)
			l.want("event: end", `"code":"unauthenticated"`, `"status":401`)
			l.want()
			m.feed <- Frame{Kind: Deleted, Version: 4} // the one watcher that is left takes it
			visitor.want("event: deleted")
			m.pass.followed <- struct{}{}
			m.pass.followed <- struct{}{} // the stream has let go of its credential: both places are free
		})
	}
}

// AC-R1
// A credential that was revoked between the check of the request and the opening of the stream opens
// nothing.
func TestAStreamIsNotOpenedWithACredentialThatHasJustEnded(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	m.pass = &pass{refused: problem("unauthenticated", "this token was revoked")}
	_, base := serve(t, m)
	for _, target := range []string{"/api/watch/acme/a", "/api/live?node=acme/a"} {
		if got := send(t, base, "GET", target, []string{"Authorization", "Bearer bob"}, nil); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}

// AC-R1
// What is sent with a credential that ends before the body does is not done, as if it had been sent after.
func TestABodyCountsOnlyWithACredentialThatIsGoodAtItsEnd(t *testing.T) {
	requests := map[string][2]string{
		"a node":           {"POST", "/api/nodes/acme/late"},
		"a node, replaced": {"PUT", "/api/nodes/acme/late"},
		"a file":           {"PUT", "/api/files/acme/content/late.txt"},
	}
	const text = `{"content":{"late":true}}`
	for name, request := range requests {
		for _, ends := range []bool{false, true} { // the control first
			t.Run(fmt.Sprintf("%s, the credential ends: %v", name, ends), func(t *testing.T) {
				m := newMesh(doc("acme", 1))
				m.pass = &pass{over: make(chan struct{}), followed: make(chan struct{}, 1)}
				slowly(t, m, func(t *testing.T, dial func() net.Conn) {
					conn := dial()
					fmt.Fprintf(conn, header, request[0]+" "+request[1], len(text))
					if _, err := io.WriteString(conn, text[:5]); err != nil {
						t.Error(err)
					}
					synctest.Wait() // it waits for the rest
					if ends {
						close(m.pass.over)
					}
					go func() { _, _ = io.WriteString(conn, text[5:]) }()
					status, body, _, _ := answered(t, conn, time.Now())
					_, file := m.files["acme/content/late.txt"]
					_, made := m.nodes["acme/late"]
					if refused := status == http.StatusUnauthorized; refused != ends || (file || made) == ends {
						t.Errorf("%d %s; there is the file %v, the node %v", status, body, file, made)
					}
					if len(m.pass.followed) != 0 {
						t.Error("the credential is still followed")
					}
				})
			})
		}
	}
}

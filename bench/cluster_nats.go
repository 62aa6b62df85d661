package main

import (
	"crypto/tls"
	"errors"
	"net/url"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// natsNode is a server in this process, with one client in it.
type natsNode struct {
	server *natsd.Server
	client *nats.Conn
}

const natsWait = 10 * time.Second

// startNATS starts a server that is routed to others. A server in a cluster needs a client port, which
// nobody uses here: the client is in the process.
func startNATS(name string, secure *tls.Config, routes ...*url.URL) (*natsNode, error) {
	s, err := natsd.NewServer(&natsd.Options{ServerName: name, Host: "127.0.0.1", Port: natsd.RANDOM_PORT, NoLog: true, NoSigs: true, Routes: routes,
		Cluster: natsd.ClusterOpts{Name: "bench", Host: "127.0.0.1", Port: natsd.RANDOM_PORT, TLSConfig: secure, TLSTimeout: natsWait.Seconds()}})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(natsWait) {
		return nil, errors.New("the NATS server is not ready")
	}
	c, err := nats.Connect("", nats.InProcessServer(s))
	return &natsNode{s, c}, err
}

const natsSubject = "portal.x"

func natsRole(args []string) error {
	secure, err := securityOf(args)
	if err != nil {
		return err
	}
	n, err := startNATS("server", secure)
	if err != nil {
		return err
	}
	if _, err := n.client.Subscribe(natsSubject, func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		return err
	}
	return alone("nats://" + n.server.ClusterAddr().String())
}

func dialNATS(peer *child, secure *tls.Config) (*subject, error) {
	route, err := url.Parse(peer.first)
	if err != nil {
		return nil, err
	}
	n, err := startNATS("caller", secure, route)
	if err != nil {
		return nil, err
	}
	ask := func(body []byte) error {
		m, err := n.client.Request(natsSubject, body, natsWait)
		if err != nil {
			return err
		}
		return whole(m.Data, body)
	}
	for end := time.Now().Add(natsWait); ask(nil) != nil; { // until it knows who listens
		if time.Now().After(end) {
			return nil, errors.New("the NATS servers do not find each other")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return &subject{close: func() { n.client.Close(); n.server.Shutdown() }, caller: func(int) func([]byte) error { return ask }}, nil
}

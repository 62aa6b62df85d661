package hubmesh

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/pgtable"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/route"
)

// Cluster makes a process one silo of many. The others are found in the database.
type Cluster struct {
	// Listen is where the connections of other silos are accepted, HOST:PORT.
	Listen string
	// Advertise is the address at which other silos reach this one, HOST:PORT. Empty is Listen, which must
	// then name a host.
	Advertise string
	// Name is this silo's among the others; one that comes back keeps it. Empty is the advertised address.
	Name string
	// Secret is shared by all silos, and of at least [MinClusterSecret] random bytes: connections between
	// silos are TLS 1.3 by keys that are derived from it, and nobody else may connect.
	Secret []byte
	// NodeTypes are the node types whose nodes this silo serves; empty is every type. Nodes of other types, and
	// those without a type, are served by other silos, and refused for the moment where there is none.
	NodeTypes []string
}

// MinClusterSecret is the least length of a cluster's secret, in bytes.
const MinClusterSecret = transport.MinSecret

// clusterName separates clusters of hubmesh from whatever else may speak the wire protocol.
const clusterName = "hubmesh"

// ClusterError says why a process can not be a silo, and what to do.
type ClusterError struct {
	Reason string
	Err    error // may be nil
}

func (e *ClusterError) Error() string { return "the cluster: " + e.Reason }
func (e *ClusterError) Unwrap() error { return e.Err }

// silo is this process as one of many.
type silo struct {
	me     membership.Member
	log    *slog.Logger
	net    transport.Transport
	made   chan struct{} // closed once the router is there
	router *route.Cluster
	table  membership.ClosingTable
	why    chan error      // why the last attempt to join came to nothing
	said   time.Time       // when that was logged last; on the turn
	dead   <-chan struct{} // of an embedded silo: closed when it was killed; else nil

	started, joined bool
}

// openSilo takes the port of the silo, before there is anything to undo.
func (m *Mesh) openSilo(o Options) error {
	if o.Embedded != nil {
		return m.openEmbedded(o)
	}
	c := o.Cluster
	if c == nil {
		return nil
	}
	switch {
	case o.Postgres == "":
		return &ClusterError{Reason: "silos share a PostgreSQL database: pass its URL as well (--postgres URL)"}
	case len(c.Secret) == 0:
		return &ClusterError{Reason: fmt.Sprintf("there is no secret; give every silo the same file with at least %d random bytes (--cluster-secret-file FILE)", MinClusterSecret)}
	case len(c.Secret) < MinClusterSecret:
		return &ClusterError{Reason: fmt.Sprintf("the secret has %d bytes; give every silo the same file with at least %d random bytes (--cluster-secret-file FILE)", len(c.Secret), MinClusterSecret)}
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return &ClusterError{Reason: fmt.Sprintf("it can not listen on '%s': want HOST:PORT, such as 127.0.0.1:7946", c.Listen), Err: err}
	}
	if ip := net.ParseIP(host); c.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return &ClusterError{Reason: fmt.Sprintf("'%s' names no host that other silos can dial: pass --advertise HOST:PORT", c.Listen)}
	}
	types, err := nodeTypes(c.NodeTypes)
	if err != nil {
		return err
	}
	secure, err := transport.FromSecret(c.Secret, clusterName)
	if err != nil {
		return &ClusterError{Reason: err.Error(), Err: err}
	}
	s := newSilo(o.Logger, membership.Member{Name: c.Name, Addr: c.Advertise, Types: types})
	if s.me.Name == "" {
		if s.me.Name = c.Advertise; s.me.Name == "" {
			s.me.Name = c.Listen
		}
		if port == "0" {
			s.me.Name = net.JoinHostPort(host, m.id) // the port is not known yet
		}
	}
	tcp, err := transport.Listen(context.Background(), transport.Config{Self: transport.Peer{Name: s.me.Name, Addr: c.Advertise}, Cluster: clusterName,
		Handler: s, Listen: c.Listen, Messages: wire.Version, Secure: secure, Logger: o.Logger})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &ClusterError{Reason: fmt.Sprintf("%s is in use by another process; stop it or pass another --cluster-listen HOST:PORT", c.Listen), Err: err}
	case err != nil:
		return &ClusterError{Reason: fmt.Sprintf("it can not listen on '%s': %v; pass another --cluster-listen HOST:PORT", c.Listen, err), Err: err}
	}
	s.net, s.me.Addr = tcp, tcp.Self().Addr
	m.silo = s
	return s.reachable(tcp)
}

// maxNodeTypes bounds the types that a silo lists: the list travels with every view.
const maxNodeTypes = 256

// nodeTypes checks the types that a silo lists; nil is every type.
func nodeTypes(list []string) ([]string, error) {
	if len(list) > maxNodeTypes {
		return nil, &ClusterError{Reason: fmt.Sprintf("it lists %d node types; want at most %d, or none for all of them (--node-types A,B)", len(list), maxNodeTypes)}
	}
	var types []string
	for _, t := range list {
		if t == "" || strings.TrimSpace(t) != t || slices.Contains(types, t) {
			return nil, &ClusterError{Reason: fmt.Sprintf("'%s' is no node type, or is listed twice: pass --node-types A,B, or nothing for every type", t)}
		}
		types = append(types, t)
	}
	return types, nil
}

func newSilo(log *slog.Logger, me membership.Member) *silo {
	return &silo{log: log, made: make(chan struct{}), why: make(chan error, 1), me: me}
}

// reachable refuses an advertised address at which this silo does not find itself.
func (s *silo) reachable(tcp *transport.TCP) error {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	own := max(binary.BigEndian.Uint64(b[:]), 1)
	tcp.SetEpoch(own)
	defer tcp.SetEpoch(0)
	there, err := tcp.Identify(context.Background(), s.me.Addr)
	switch {
	case err != nil:
		return &ClusterError{Reason: fmt.Sprintf("this silo does not reach itself at %s: %v; pass the address at which other silos reach it as --advertise HOST:PORT", s.me.Addr, cause(err)), Err: err}
	case there.Epoch != own:
		return &ClusterError{Reason: fmt.Sprintf("another silo, '%s', answers at %s; pass the address at which other silos reach this one as --advertise HOST:PORT", there.Name, s.me.Addr)}
	}
	return nil
}

func cause(err error) error {
	var dial *transport.DialError
	if errors.As(err, &dial) && dial.Cause != nil {
		return dial.Cause
	}
	return err
}

// isolated tells nodes whether this process must not answer from what it holds, and confirm asks the membership.
func (m *Mesh) isolated() (isolated func() bool, confirm func(context.Context) bool) {
	if m.silo == nil {
		return nil, nil
	}
	return func() bool { return m.silo.router.Isolated() }, func(ctx context.Context) bool { return m.silo.router.Confirm(ctx) }
}

// openRouter builds what finds the silo of an address.
func (m *Mesh) openRouter(o Options) (err error) {
	s := m.silo
	wires := nodehub.Wire()
	for _, t := range o.Types {
		for _, w := range t.wires {
			if !slices.ContainsFunc(wires, func(have hub.WireType) bool { return have.Name() == w.Name() }) {
				wires = append(wires, w)
			}
		}
	}
	codec, err := route.NewCodec(wires, nodehub.Causes())
	if err != nil {
		return err
	}
	do := func(f func()) { <-s.made; s.router.Do(func(*cluster.Silo) { f() }) }
	changed := func() { <-s.made; s.router.Do(func(x *cluster.Silo) { x.Member.Refresh() }) }
	if o.Embedded != nil {
		s.table = o.Embedded.Table(do, changed)
	} else {
		table, err := pgtable.New(pgtable.Options{URL: o.Postgres, Log: o.Logger, Do: do, Changed: changed})
		if err != nil {
			return err
		}
		s.table = table
	}
	s.router = route.NewCluster(route.ClusterOptions{Mesh: m.hubs, Nodes: m.router, Codec: codec, Table: s.table, Me: s.me,
		Config: cluster.Defaults(), Pace: membership.DefaultPace(), Timing: membership.DefaultTiming(), Waiting: s.waits, Hears: m.hears(), Process: m.processStatus})
	return nil
}

// waitingPace is the least time between two lines that say why this silo still joins.
const waitingPace = 5 * time.Second

// waits notes why an attempt to join came to nothing. The newest counts. It is called on the turn.
func (s *silo) waits(why error) {
	if now := time.Now(); now.Sub(s.said) >= waitingPace {
		s.said = now
		s.log.Warn("This silo could not join the cluster yet and tries again", "silo", s.me.Name, "error", why)
	}
	select {
	case <-s.why:
	default:
	}
	select {
	case s.why <- why:
	default:
	}
}

// join stands in the membership when it returns. What no repetition can mend ends it at once.
func (s *silo) join(bounds *budget.Table) error {
	bound, cancel := bounds.Context(context.Background(), budget.ClusterJoin, "join the cluster")
	defer cancel()
	s.started, s.said = true, time.Now()
	s.log.Info("This silo joins the cluster", "silo", s.me.Name, "addr", s.me.Addr)
	s.router.Start(s.net)
	close(s.made)
	var last error
	for {
		select {
		case <-s.router.Joined():
			s.joined = true
			s.log.Info("This silo has joined the cluster", "silo", s.me.Name, "addr", s.me.Addr)
			return nil
		case last = <-s.why:
			if e := refused(last); e != nil {
				return e
			}
		case <-s.dead:
			return &ClusterError{Reason: "this silo was killed before it had joined"}
		case <-bound.Done():
			if last == nil {
				last = context.Cause(bound)
			}
			return &ClusterError{Reason: fmt.Sprintf("this silo did not get in within %v: %v; see to it that every silo reaches every other one, and start it again", bounds.Own(budget.ClusterJoin), last), Err: last}
		}
	}
}

// refused turns what keeps a silo out for good into what to do; nil for what may pass.
func refused(err error) error {
	var blocked *membership.BlockedError
	var name *membership.NameError
	switch {
	case errors.As(err, &name):
		return &ClusterError{Reason: fmt.Sprintf("a silo with the name '%s' is there already, at %s; pass another --name", name.Member.Name, name.Member.Addr), Err: err}
	case !errors.As(err, &blocked):
		return nil
	}
	there := fmt.Sprintf("silo '%s' at %s", blocked.Member.Name, blocked.Member.Addr)
	var version *transport.VersionError
	var alert tls.AlertError
	switch {
	case errors.As(err, &version):
		ours, theirs := version.Versions()
		return &ClusterError{Reason: fmt.Sprintf("%s speaks wire version %s and this one %s; run releases of the same wire version on all silos", there, theirs, ours), Err: err}
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, &alert):
		return &ClusterError{Reason: there + " has another secret; give every silo the same --cluster-secret-file", Err: err}
	case errors.As(err, new(*transport.ClusterError)):
		return &ClusterError{Reason: there + " belongs to another cluster; give this one a database of its own", Err: err}
	}
	return nil
}

// alone tells whether nobody else is in the view.
func (s *silo) alone() (alone bool) {
	s.router.Do(func(x *cluster.Silo) { alone = len(x.View().Members()) < 2 })
	return alone
}

// leave takes the silo out of the placement and stops its node hubs, which others then start.
func (s *silo) leave(ctx context.Context) {
	if !s.joined || s.isDead() {
		return
	}
	table := budget.Defaults()
	bound, cancel := table.Context(ctx, budget.ClusterLeave, "leave the cluster")
	defer cancel()
	if err := s.router.Leave(bound); err != nil {
		s.log.Warn("This silo leaves before its node hubs have ended; the others start them when it is gone", "silo", s.me.Name, "error", err)
	}
}

// close takes the silo out of the membership and ends its connections. The hubs are closed before.
func (s *silo) close(ctx context.Context) error {
	table := budget.Defaults()
	bound, cancel := table.Context(ctx, budget.ClusterLeave, "be gone from the cluster")
	defer cancel()
	if s.joined && !s.isDead() {
		others := !s.alone()
		if err := s.router.Gone(bound); err != nil {
			s.log.Warn("The membership was not told that this silo is gone; the others find out", "silo", s.me.Name, "error", err)
		} else if others {
			s.linger(table.Own(budget.ClusterLinger))
		}
	}
	err := s.net.Close(bound)
	if !s.started {
		close(s.made)
	}
	if s.router != nil {
		s.router.Stop()
	}
	if s.table != nil {
		s.table.Close()
	}
	return err
}

// linger keeps the connections until the others have the view without this silo: until then they send to it, and
// what was sent on a connection that is closed has no known outcome.
func (s *silo) linger(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.dead:
	}
}

// Handle implements transport.Handler: nobody calls before this silo has an epoch.
func (s *silo) Handle(from transport.Peer, r transport.Request, reply func([]byte)) {
	<-s.made
	s.router.Handler().Handle(from, r, reply)
}

// Accepted implements transport.Handler.
func (s *silo) Accepted(from transport.Peer) {
	<-s.made
	s.router.Handler().Accepted(from)
}

// Broken implements transport.Handler.
func (s *silo) Broken(to transport.Peer, cause error) {
	<-s.made
	s.router.Handler().Broken(to, cause)
}

package transport

import "time"

const (
	toServer = iota
	toClient
)

// flow is one connection between two endpoints, from its dial on. All of it is under the network's lock.
type flow struct {
	net      *Network
	client   *Memory
	server   *Memory // nil until the kernel at the address has answered
	link     *memoryLink
	s        *session
	hello    hello
	dialling bool
	timeout  func() bool
	welcomed bool    // the server's process has accepted it
	open     [2]bool // the end that sends in this direction still holds the connection
	last     [2]time.Duration
	stalled  [2][]packet
	maxBody  int // of answers: what both ends take
}

// packet is a frame under way. run is an event of the endpoint at which it arrives.
type packet struct {
	end  bool          // of the connection: no cut loses it
	late time.Duration // instead of the delay of the network
	free bool          // where overtaking is allowed, it keeps no order
	run  func()
}

func (f *flow) ends(way int) (from, to *Memory) {
	if way == toServer {
		return f.client, f.server
	}
	return f.server, f.client
}

func (f *flow) closed() bool { return !f.open[toServer] || !f.open[toClient] }

// send puts a frame on its way, or behind those that a cut holds back.
func (f *flow) send(way int, p packet) {
	from, to := f.ends(way)
	if f.net.isCut(from, to) || len(f.stalled[way]) > 0 {
		f.stalled[way] = append(f.stalled[way], p)
		return
	}
	f.transmit(way, p)
}

func (f *flow) transmit(way int, p packet) {
	from, to := f.ends(way)
	d := p.late
	if d == 0 {
		d = f.net.travel(from, to)
	}
	if p.free && f.net.overtaking {
		to.at(f.net.sched.Now()+d, p.run)
		return
	}
	f.last[way] = max(f.net.sched.Now()+d, f.last[way]+1) // order is kept
	to.at(f.last[way], p.run)
}

// lose is the end of an endpoint's process: its kernel closes its side.
func (f *flow) lose(m *Memory) {
	if f.server == m && f.open[toClient] {
		f.open[toClient] = false
		f.reset(toClient)
	}
	if f.client == m {
		if f.timeout != nil {
			f.timeout()
		}
		f.dialling, f.open[toServer] = false, false
		if f.server != nil {
			f.reset(toServer)
		}
	}
	f.net.prune()
}

// hangUp closes the connection at one of its living ends: what has been sent still arrives.
func (f *flow) hangUp(way int) {
	if !f.open[way] {
		return
	}
	f.open[way] = false
	if f.server == nil {
		return
	}
	f.send(way, packet{end: true, run: f.ending(way)})
}

// reset tells the end at which a direction arrives that a kernel has closed the connection.
func (f *flow) reset(way int) {
	f.send(way, packet{end: true, late: between(f.net.rng, resetMin, resetMax), run: f.ending(way)})
}

// ending is the event of the connection's end.
func (f *flow) ending(way int) func() {
	if way == toServer {
		return func() { f.server.hungUp(f) }
	}
	return func() { f.client.broke(f, errPeerEnded) }
}

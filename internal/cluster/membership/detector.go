package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/turn"
)

// Links are the connections that this silo dials.
type Links interface {
	// Dial opens a connection where there is none; done is called on the turn, once, never before
	// Dial has returned. A dial that fails, this one or another's, is told by [Detector.Failed] too.
	Dial(to Member, done func(error))
	// Ping asks for a sign of life on the connection there is. pong is called on the turn when it
	// comes, and not at all when it does not.
	Ping(to Member, pong func(Pong))
	// Differs says that a peer works with another view than this silo.
	Differs(from Member, theirs Key)
	// Suspect starts or ends the suspicion of a peer: reads in flight to it are answered, new
	// requests to it are refused.
	Suspect(to Member, on bool)
	// Drop closes the connection to an incarnation, which is not told by [Detector.Broken].
	Drop(to Member, cause error)
	// Forget drops what is kept of an incarnation that is no member any more.
	Forget(to Member)
}

// Pace is how often peers are asked and how long they may be silent. Suspect < Vote < Close.
type Pace struct {
	Ping     time.Duration // between two pings
	Suspect  time.Duration // age of the last pong at which a peer is suspect
	Vote     time.Duration // at which this silo votes against it
	Close    time.Duration // at which its connection is closed and dialled anew
	Paused   time.Duration // two ticks further apart than this were a pause of this silo's own
	Outsider time.Duration // silence after which a connection to a silo outside the view is closed
	Redial   []time.Duration
}

// DefaultPace is that of protocol.md §7.
func DefaultPace() Pace {
	return Pace{
		Ping: 300 * time.Millisecond, Suspect: 600 * time.Millisecond, Vote: 1200 * time.Millisecond,
		Close: 1500 * time.Millisecond, Paused: 600 * time.Millisecond, Outsider: 1500 * time.Millisecond,
		Redial: []time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond},
	}
}

// Detector judges peers by the age of their last pong. It pings every connection that this silo has
// dialled, whoever asked for it, dials members to which there is none, and votes against members that
// stay silent or cannot be dialled. After a pause of its own it judges nobody by what it missed. It
// runs on the turn.
type Detector struct {
	clock turn.Clock
	links Links
	pace  Pace
	self  Epoch
	vote  func(Member)

	permit *Permit

	view  *View
	peers map[Epoch]*peer
	last  time.Duration // of the last tick
	stop  func()
}

type peer struct {
	m         Member
	connected bool
	dialling  bool
	suspect   bool
	heard     time.Duration // when the last pong came
	voted     time.Duration // when this silo has voted against it last; 0 is never
	load      int           // what it told, and what was placed there since; -1 before the first
}

// NewDetector returns a detector that does nothing before [Detector.Start]. vote is called for each
// silence that calls for a vote; whoever gets it decides whether to cast it.
func NewDetector(c turn.Clock, l Links, p Pace, vote func(Member)) *Detector {
	return &Detector{clock: c, links: l, pace: p, vote: vote, permit: NewPermit(p.Vote), peers: map[Epoch]*peer{}}
}

// Permit says until when this silo may answer from what it holds.
func (d *Detector) Permit() *Permit { return d.permit }

// Start begins to tick.
func (d *Detector) Start() {
	d.last = d.clock.Now()
	d.stop = d.clock.After(d.pace.Ping, d.tick)
}

// Stop ends it.
func (d *Detector) Stop() {
	if d.stop != nil {
		d.stop()
	}
}

// Apply makes a view count. self is not judged.
func (d *Detector) Apply(v *View, self Epoch) {
	d.view, d.self = v, self
	d.permit.Apply(v, self)
}

// Renew forgets every connection, and what was held against peers on it: this silo has closed them all, to open them
// anew under another epoch.
func (d *Detector) Renew() {
	for _, p := range d.sorted() {
		p.connected = false
		d.permit.Lost(p.m.Epoch)
		if p.suspect {
			p.suspect = false
			d.links.Suspect(p.m, false)
		}
	}
}

// Age is the time since a peer's last pong; false where there is no connection to it.
func (d *Detector) Age(e Epoch) (time.Duration, bool) {
	p := d.peers[e]
	if p == nil || !p.connected {
		return 0, false
	}
	return d.clock.Now() - p.heard, true
}

// voteCounts is how long after a vote was sent it may count: it may have waited for the table.
const voteCounts = VoteFor + 3*time.Second

// cast votes against a peer.
func (d *Detector) cast(p *peer) {
	p.voted = d.clock.Now()
	d.vote(p.m)
}

// Promise is what a pong tells a peer: the time since its own last pong, from which it can know when this silo
// will vote against it; false where it must not count on that, because this silo has no connection to it, or has
// voted already.
func (d *Detector) Promise(e Epoch) (heard time.Duration, ok bool) {
	p := d.peers[e]
	if p == nil || !p.connected || p.voted > 0 && d.clock.Now()-p.voted < voteCounts {
		return 0, false
	}
	return d.Age(e)
}

// Suspected tells whether a peer is suspect.
func (d *Detector) Suspected(e Epoch) bool {
	p := d.peers[e]
	return p != nil && p.suspect
}

// Load is how many node hubs a peer serves, by its last pong and what this silo has placed there since; false
// where that is not known, or the peer is suspect.
func (d *Detector) Load(e Epoch) (int, bool) {
	p := d.peers[e]
	if p == nil || !p.connected || p.suspect || p.load < 0 {
		return 0, false
	}
	return p.load, true
}

// Placed notes that a node hub was placed at a peer, which its next pong tells.
func (d *Detector) Placed(e Epoch) {
	if p := d.peers[e]; p != nil && p.load >= 0 {
		p.load++
	}
}

// Connected notes that a connection to a peer is open.
func (d *Detector) Connected(to Member) {
	p := d.at(to)
	p.connected = true
	d.heardFrom(p)
}

// dial opens a connection to a peer, or finds the one that another has dialled.
func (d *Detector) dial(p *peer, done func(error)) {
	d.links.Dial(p.m, func(err error) {
		if err == nil && !p.connected {
			d.Connected(p.m)
		}
		done(err)
	})
}

// Failed notes that a dial has failed, whoever asked for it.
func (d *Detector) Failed(to Member) {
	if d.view.Has(to.Epoch) && to.Epoch != d.self {
		d.cast(d.at(to))
	}
}

// Broken notes that an open connection has broken. Members are dialled again at once and a few times
// soon after: while the kernel takes a dead process down, a dial can still succeed.
func (d *Detector) Broken(to Member) {
	p := d.at(to)
	p.connected = false
	d.permit.Lost(p.m.Epoch)
	if d.view.Has(to.Epoch) && to.Epoch != d.self {
		d.redial(p, 0)
	}
}

func (d *Detector) redial(p *peer, n int) {
	if n >= len(d.pace.Redial) {
		return
	}
	d.clock.After(d.pace.Redial[n], func() {
		if !d.view.Has(p.m.Epoch) || d.peers[p.m.Epoch] != p {
			return
		}
		d.dial(p, func(err error) {
			if err == nil { // is it there to stay? the next dial finds the connection, or makes another
				d.redial(p, n+1)
			}
		})
	})
}

func (d *Detector) at(m Member) *peer {
	p := d.peers[m.Epoch]
	if p == nil {
		p = &peer{m: m, load: -1}
		d.peers[m.Epoch] = p
	}
	return p
}

func (d *Detector) heardFrom(p *peer) {
	p.heard = d.clock.Now()
	if p.suspect {
		p.suspect = false
		d.links.Suspect(p.m, false)
	}
}

func (d *Detector) tick() {
	now := d.clock.Now()
	paused := now-d.last > d.pace.Paused
	d.last = now
	d.stop = d.clock.After(d.pace.Ping, d.tick)
	for _, p := range d.sorted() {
		d.judge(p, now, paused)
	}
	d.watch(now)
	for _, m := range d.view.Members() {
		if m.Epoch == d.self {
			continue
		}
		p := d.at(m)
		switch {
		case !p.connected && !p.dialling:
			p.dialling = true
			d.dial(p, func(error) { p.dialling = false })
		case p.connected && now-p.heard > d.pace.Vote && !paused:
			d.cast(p)
		}
	}
}

// watch has the peers that become suspect before the next tick looked at when they do: what is in flight to
// them waits for no tick.
func (d *Detector) watch(now time.Duration) {
	for _, p := range d.sorted() {
		due := p.heard + d.pace.Suspect - now
		if !p.connected || p.suspect || due >= d.pace.Ping {
			continue
		}
		d.clock.After(due+1, func() {
			if now := d.clock.Now(); p.connected && !p.suspect && now-p.heard > d.pace.Suspect && now-d.last <= d.pace.Paused {
				p.suspect = true
				d.links.Suspect(p.m, true)
			}
		})
	}
}

// judge looks at one connection.
func (d *Detector) judge(p *peer, now time.Duration, paused bool) {
	if !p.connected {
		if !d.view.Has(p.m.Epoch) {
			delete(d.peers, p.m.Epoch)
			d.links.Forget(p.m)
		}
		return
	}
	if paused {
		p.heard = now // what was missed in this silo's own pause says nothing about the peer
	}
	age := now - p.heard
	limit := d.pace.Close
	if !d.view.Has(p.m.Epoch) {
		limit = d.pace.Outsider
	}
	if age > limit {
		p.connected = false
		d.permit.Lost(p.m.Epoch)
		d.links.Drop(p.m, fmt.Errorf("no pong for %v", age.Round(time.Millisecond)))
		return
	}
	if age > d.pace.Suspect && !p.suspect {
		p.suspect = true
		d.links.Suspect(p.m, true)
	}
	d.links.Ping(p.m, func(is Pong) {
		p.load = is.Load
		d.heardFrom(p)
		d.permit.Heard(p.m.Epoch, now, is)
		if is.Key != (Key{}) && is.Key != d.view.Key() {
			d.links.Differs(p.m, is.Key)
		}
	})
}

func (d *Detector) sorted() []*peer {
	out := make([]*peer, 0, len(d.peers))
	for _, p := range d.peers {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *peer) int {
		if a.m.Name != b.m.Name {
			if a.m.Name < b.m.Name {
				return -1
			}
			return 1
		}
		if a.m.Epoch < b.m.Epoch {
			return -1
		}
		return 1
	})
	return out
}

package auth

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Failed attempts of one place: a burst of failBurst, then one every failEvery. Places are remembered
// up to failPlaces; then the one that failed longest ago is forgotten.
const (
	failBurst  = 10
	failEvery  = 6 * time.Second
	failPlaces = 10_000
)

// failures counts failed attempts by place.
type failures struct {
	mu     sync.Mutex
	places map[netip.Prefix]*list.Element
	recent list.List // of *place, the latest failure first
}

type place struct {
	prefix netip.Prefix
	bucket *rate.Limiter
}

// placeOf is the address that a request came from; of IPv6 its network, as a host has many addresses.
func placeOf(remoteAddr string) netip.Prefix {
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		host = remoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{} // such as a Unix socket: one place for all
	}
	addr = addr.Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(addr, bits).Masked()
}

// wait tells how long a place has to wait before another attempt; 0 is not at all.
func (f *failures) wait(p netip.Prefix) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.places[p]
	if !ok {
		return 0
	}
	if missing := 1 - e.Value.(*place).bucket.Tokens(); missing > 0 {
		return time.Duration(missing * float64(failEvery))
	}
	return 0
}

// add counts a failed attempt.
func (f *failures) add(p netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places == nil {
		f.places = map[netip.Prefix]*list.Element{}
	}
	e, ok := f.places[p]
	if ok {
		f.recent.MoveToFront(e)
	} else {
		e = f.recent.PushFront(&place{prefix: p, bucket: rate.NewLimiter(rate.Every(failEvery), failBurst)})
		f.places[p] = e
		if len(f.places) > failPlaces {
			last := f.recent.Back()
			f.recent.Remove(last)
			delete(f.places, last.Value.(*place).prefix)
		}
	}
	e.Value.(*place).bucket.Allow()
}

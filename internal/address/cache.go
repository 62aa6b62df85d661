package address

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	cacheSize = 1024
	// maxCached is the longest text that is kept, in bytes.
	maxCached = 256
)

// Cache parses texts that come again and again: it keeps some of the addresses that it has parsed, a bounded
// number. It is safe for concurrent use.
type Cache struct {
	seed maphash.Seed
	at   [cacheSize]atomic.Pointer[cached]
}

type cached struct {
	text string
	Address
}

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{seed: maphash.MakeSeed()} }

// Parse is [Parse]. The address that it points to is shared and must not be changed.
func (c *Cache) Parse(full string) (*Address, error) {
	at := &c.at[maphash.String(c.seed, full)%cacheSize]
	if known := at.Load(); known != nil && known.text == full {
		return &known.Address, nil
	}
	return keep(at, full)
}

// ParseBytes is Parse of a text that is not kept.
func (c *Cache) ParseBytes(full []byte) (*Address, error) {
	at := &c.at[maphash.Bytes(c.seed, full)%cacheSize]
	if known := at.Load(); known != nil && known.text == string(full) {
		return &known.Address, nil
	}
	return keep(at, string(full))
}

func keep(at *atomic.Pointer[cached], full string) (*Address, error) {
	a, err := Parse(full)
	if err != nil {
		return nil, err
	}
	if len(full) > maxCached {
		return &a, nil
	}
	known := &cached{full, a}
	at.Store(known)
	return &known.Address, nil
}

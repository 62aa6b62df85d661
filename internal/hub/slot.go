package hub

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// The phases of a reply slot. Leaving pending or started by compare-and-swap is the one outcome of a
// request; everything from phaseReplied on is terminal.
const (
	phaseFree uint64 = iota
	phasePending
	phaseStarted
	phaseReplied
	phaseFailed
	phaseLapsed
	phaseCancelled
	phases

	phaseMask  = 0x0f
	startedBit = 0x10 // set on a terminal phase when the turn had started
	stageBits  = 8
)

// slot is where one request's outcome arrives. Slots are reused; the generation in the state word
// tells one use from the next. Padded to keep neighbours off one cache line pair.
type slot struct {
	state    atomic.Uint64 // generation << 8 | startedBit | phase
	deadline atomic.Int64  // when the wait lapses; 0 while not armed
	told     atomic.Uint32 // the generation that was reported as stale
	val      any
	err      error
	wake     chan struct{} // capacity 1
	// visitor, when set, gets the outcome instead of a goroutine that waits: the request came from
	// another process.
	visitor  *Visitor
	cur      atomic.Pointer[Delivery]
	owner    atomic.Pointer[Hub]   // the hub that asks, if a hub does
	scope    atomic.Pointer[Scope] // the scope that asks, if one does
	outcomes [phases]atomic.Uint32
	index    uint32
	nextFree atomic.Uint32
}

func (s *slot) generation() uint32 { return uint32(s.state.Load() >> stageBits) }

// begin marks the request's turn as started. It is false when the caller has gone.
func (s *slot) begin(gen uint32) bool {
	return s.state.CompareAndSwap(uint64(gen)<<stageBits|phasePending, uint64(gen)<<stageBits|phaseStarted)
}

// unbegin takes begin back, when a turn hands its request on.
func (s *slot) unbegin(gen uint32) {
	s.state.CompareAndSwap(uint64(gen)<<stageBits|phaseStarted, uint64(gen)<<stageBits|phasePending)
}

// open tells whether the request of that generation still waits.
func (s *slot) open(gen uint32) bool {
	st := s.state.Load()
	return uint32(st>>stageBits) == gen && (st&phaseMask == phasePending || st&phaseMask == phaseStarted)
}

// complete gives the request its outcome. Only the first call for a generation succeeds.
func (s *slot) complete(gen uint32, phase uint64, val any, err error) bool {
	for {
		st := s.state.Load()
		p := st & phaseMask
		if uint32(st>>stageBits) != gen || (p != phasePending && p != phaseStarted) {
			return false
		}
		next := uint64(gen)<<stageBits | phase
		if p == phaseStarted {
			next |= startedBit
		}
		if !s.state.CompareAndSwap(st, next) {
			continue
		}
		s.val, s.err = val, err
		s.outcomes[phase].Add(1)
		s.deadline.Store(0)
		if v := s.visitor; v != nil {
			v.settle(next, val, err)
			return true
		}
		s.wake <- struct{}{}
		return true
	}
}

const slabChunk = 256

// slab holds the reply slots of one mesh. It grows to the largest number of requests that were ever
// pending at once and does not shrink.
type slab struct {
	chunks atomic.Pointer[[]*[slabChunk]slot]
	mu     sync.Mutex    // guards growth
	free   atomic.Uint64 // top of the free list: tag << 32 | index + 1
}

func (b *slab) at(i uint32) *slot {
	return &(*b.chunks.Load())[i/slabChunk][i%slabChunk]
}

// take returns a slot in phase pending with a fresh generation. The caller arms the deadline.
func (b *slab) take() (*slot, uint32) {
	for {
		top := b.free.Load()
		i := uint32(top)
		if i == 0 {
			b.grow()
			continue
		}
		s := b.at(i - 1)
		next := s.nextFree.Load()
		if !b.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(next)) {
			continue
		}
		gen := s.generation() + 1
		return s, gen
	}
}

// release gives a slot back. Only the goroutine that took it may, after it has received the wake-up.
func (b *slab) release(s *slot) {
	// The state keeps its terminal phase until the next use: nothing takes it for a request that waits.
	s.val, s.err, s.visitor = nil, nil, nil
	s.cur.Store(nil)
	if s.owner.Load() != nil {
		s.owner.Store(nil)
	}
	if s.scope.Load() != nil {
		s.scope.Store(nil)
	}
	for {
		top := b.free.Load()
		s.nextFree.Store(uint32(top))
		if b.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(s.index+1)) {
			return
		}
	}
}

func (b *slab) grow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if uint32(b.free.Load()) != 0 {
		return
	}
	var old []*[slabChunk]slot
	if p := b.chunks.Load(); p != nil {
		old = *p
	}
	chunk := new([slabChunk]slot)
	base := uint32(len(old) * slabChunk)
	for i := range chunk {
		chunk[i].index = base + uint32(i)
		chunk[i].wake = make(chan struct{}, 1)
		chunk[i].nextFree.Store(base + uint32(i) + 2)
	}
	grown := append(old[:len(old):len(old)], chunk)
	b.chunks.Store(&grown)
	for {
		top := b.free.Load()
		chunk[slabChunk-1].nextFree.Store(uint32(top))
		if b.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(base+1)) {
			return
		}
	}
}

// each calls f for every slot that waits, with its generation.
func (b *slab) each(f func(s *slot, gen uint32)) {
	p := b.chunks.Load()
	if p == nil {
		return
	}
	for _, c := range *p {
		for i := range c {
			st := c[i].state.Load()
			if ph := st & phaseMask; ph == phasePending || ph == phaseStarted {
				f(&c[i], uint32(st>>stageBits))
			}
		}
	}
}

func correlation(index, gen uint32) string {
	return strconv.FormatUint(uint64(index), 36) + "." + strconv.FormatUint(uint64(gen), 36)
}

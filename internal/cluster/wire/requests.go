package wire

import "fmt"

// Kind implements [Request].
func (Ping) Kind() Kind      { return KindPing }
func (Hello) Kind() Kind     { return KindHello }
func (ViewGet) Kind() Kind   { return KindViewGet }
func (ViewPush) Kind() Kind  { return KindViewPush }
func (Claim) Kind() Kind     { return KindClaim }
func (Detach) Kind() Kind    { return KindDetach }
func (Lookup) Kind() Kind    { return KindLookup }
func (Locate) Kind() Kind    { return KindLocate }
func (SlotQuery) Kind() Kind { return KindSlotQuery }
func (HandOver) Kind() Kind  { return KindHandOver }
func (Restored) Kind() Kind  { return KindRestored }
func (Explain) Kind() Kind   { return KindExplain }
func (Place) Kind() Kind     { return KindPlace }
func (Committed) Kind() Kind { return KindCommitted }

func (Ping) append(b []byte) []byte       { return b }
func (Hello) append(b []byte) []byte      { return b }
func (ViewGet) append(b []byte) []byte    { return b }
func (m ViewPush) append(b []byte) []byte { return appendView(b, m.View) }

func (m Claim) append(b []byte) []byte {
	b = appendHead(b, m.Head)
	b = appendUint(b, uint64(len(m.Items)))
	for _, it := range m.Items {
		b = appendItem(b, it)
	}
	return appendUint(appendSlots(b, m.CompleteFor), m.UpTo)
}

func appendItem(b []byte, it ClaimItem) []byte {
	b = appendUint(appendString(b, it.Addr), it.Reg)
	return append(appendBool(b, it.Node), byte(it.Phase))
}

func (r *reader) item() ClaimItem {
	it := ClaimItem{Addr: r.addr(), Reg: r.uint(), Node: r.bool(), Phase: Phase(r.byte())}
	if it.Phase > Pending {
		r.fail("unknown phase")
	}
	return it
}

// The least bytes of the items of lists. An address has at least two: its length and a letter.
const (
	itemSize   = 5
	detachSize = 4
	locateSize = 3
	gainedSize = 3
	entrySize  = 13
	guardSize  = 14
	addrSize   = 2
)

func (r *reader) detachItem() DetachItem {
	return DetachItem{Addr: r.addr(), Reg: r.uint(), Node: r.bool()}
}

func (r *reader) locateItem() LocateItem {
	it := LocateItem{Addr: r.addr(), Exclusive: r.bool()}
	if it.Exclusive {
		it.Slot, it.Acquired = r.small(), r.key()
	}
	return it
}

func (r *reader) gained() Gained { return Gained{Slot: r.small(), Acquired: r.key()} }

func (r *reader) addressedEntry() AddressedEntry {
	return AddressedEntry{Addr: r.addr(), Entry: r.entry()}
}

func (r *reader) guard() Guard {
	return Guard{Addr: r.addr(), Epoch: r.epoch(), Reg: r.uint(), Closed: r.bool(), Left: r.duration(), Age: r.duration()}
}

func (m Detach) append(b []byte) []byte {
	b = appendHead(b, m.Head)
	b = appendUint(b, uint64(len(m.Items)))
	for _, it := range m.Items {
		b = appendBool(appendUint(appendString(b, it.Addr), it.Reg), it.Node)
	}
	return b
}

func (m Lookup) append(b []byte) []byte {
	b = appendString(appendHead(b, m.Head), m.Addr)
	if m.Stale == nil {
		return appendBool(b, false)
	}
	return appendEntry(appendBool(b, true), *m.Stale)
}

func (m Locate) append(b []byte) []byte {
	b = appendHead(b, m.Head)
	b = appendUint(b, uint64(len(m.Items)))
	for _, it := range m.Items {
		b = appendBool(appendString(b, it.Addr), it.Exclusive)
		if it.Exclusive {
			b = appendKey(appendUint(b, uint64(it.Slot)), it.Acquired)
		}
	}
	return b
}

func (m SlotQuery) append(b []byte) []byte {
	b = appendHead(b, m.Head)
	b = appendUint(b, uint64(len(m.Slots)))
	for _, g := range m.Slots {
		b = appendKey(appendUint(b, uint64(g.Slot)), g.Acquired)
	}
	return b
}

func (m Place) append(b []byte) []byte { return appendString(appendHead(b, m.Head), m.Addr) }

func (m Committed) append(b []byte) []byte {
	b = appendUint(appendHead(b, m.Head), uint64(len(m.Addrs)))
	for _, a := range m.Addrs {
		b = appendString(b, a)
	}
	return b
}

func (m Explain) append(b []byte) []byte { return appendString(b, m.Addr) }

func (m Restored) append(b []byte) []byte {
	return appendUint(appendString(appendHead(b, m.Head), m.Addr), m.Reg)
}

func (m HandOver) append(b []byte) []byte {
	b = appendBool(appendUint(appendHead(b, m.Head), uint64(m.Slot)), m.Settled)
	b = appendUint(b, uint64(len(m.Entries)))
	for _, e := range m.Entries {
		b = appendEntry(appendString(b, e.Addr), e.Entry)
	}
	b = appendUint(b, uint64(len(m.Guards)))
	for _, g := range m.Guards {
		b = appendUint(appendEpoch(appendString(b, g.Addr), g.Epoch), g.Reg)
		b = appendDuration(appendDuration(appendBool(b, g.Closed), g.Left), g.Age)
	}
	return b
}

// Decode reads a request of the given kind. Its error wraps [ErrMalformed].
func Decode(k Kind, b []byte) (Request, error) {
	r := &reader{b: b}
	m := r.request(k)
	if err := r.done(); err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	return m, nil
}

func (r *reader) request(k Kind) Request {
	switch k {
	case KindPing:
		return Ping{}
	case KindHello:
		return Hello{}
	case KindViewGet:
		return ViewGet{}
	case KindViewPush:
		return ViewPush{View: r.view()}
	case KindClaim:
		return Claim{Head: r.head(), Items: list(r, itemSize, (*reader).item), CompleteFor: r.slots(), UpTo: r.uint()}
	case KindDetach:
		return Detach{Head: r.head(), Items: list(r, detachSize, (*reader).detachItem)}
	case KindLookup:
		m := Lookup{Head: r.head(), Addr: r.addr()}
		if r.bool() {
			e := r.entry()
			m.Stale = &e
		}
		return m
	case KindLocate:
		return Locate{Head: r.head(), Items: list(r, locateSize, (*reader).locateItem)}
	case KindSlotQuery:
		return SlotQuery{Head: r.head(), Slots: list(r, gainedSize, (*reader).gained)}
	case KindHandOver:
		return HandOver{Head: r.head(), Slot: r.small(), Settled: r.bool(),
			Entries: list(r, entrySize, (*reader).addressedEntry), Guards: list(r, guardSize, (*reader).guard)}
	case KindPlace:
		return Place{Head: r.head(), Addr: r.addr()}
	case KindCommitted:
		return Committed{Head: r.head(), Addrs: list(r, addrSize, (*reader).addr)}
	case KindExplain:
		return Explain{Addr: r.string()}
	case KindRestored:
		return Restored{Head: r.head(), Addr: r.addr(), Reg: r.uint()}
	}
	r.fail("unknown kind")
	return nil
}

package wire

// code stands before every answer. Its numbers are part of the wire.
type code uint8

const (
	codeOK code = iota + 1
	codeViewIs
	codeWrongEpoch
	codeNotOwner
	codeClaimed
	codeDetached
	codeHit
	codeNotHere
	codeClosed
	codeUnknown
	codeLocated
	codeSlotIs
	codeExplained
	codePong
)

func (OK) code() code         { return codeOK }
func (ViewIs) code() code     { return codeViewIs }
func (WrongEpoch) code() code { return codeWrongEpoch }
func (NotOwner) code() code   { return codeNotOwner }
func (Claimed) code() code    { return codeClaimed }
func (Detached) code() code   { return codeDetached }
func (Hit) code() code        { return codeHit }
func (NotHere) code() code    { return codeNotHere }
func (Closed) code() code     { return codeClosed }
func (Unknown) code() code    { return codeUnknown }
func (Located) code() code    { return codeLocated }
func (SlotIs) code() code     { return codeSlotIs }
func (Explained) code() code  { return codeExplained }
func (Pong) code() code       { return codePong }

func (OK) append(b []byte) []byte { return b }
func (a Pong) append(b []byte) []byte {
	return appendDuration(appendBool(appendKey(appendUint(b, uint64(max(a.Load, 0))), a.Key), a.Hears), a.Heard)
}
func (a ViewIs) append(b []byte) []byte     { return appendView(b, a.View) }
func (a WrongEpoch) append(b []byte) []byte { return appendKey(b, a.Key) }
func (a NotOwner) append(b []byte) []byte   { return appendKey(b, a.Key) }

func (a Claimed) append(b []byte) []byte {
	b = appendUint(appendKey(b, a.Key), uint64(len(a.Results)))
	for _, r := range a.Results {
		b = append(b, byte(r.Verdict))
		if r.Verdict == Held {
			b = appendEntry(b, r.Holder)
		}
	}
	return appendSlots(b, a.Complete)
}

func (a Detached) append(b []byte) []byte {
	b = appendUint(appendKey(b, a.Key), uint64(len(a.Verdicts)))
	for _, v := range a.Verdicts {
		b = append(b, byte(v))
	}
	return b
}

func (a Hit) append(b []byte) []byte     { return appendEntry(b, a.Entry) }
func (a NotHere) append(b []byte) []byte { return appendUint(b, uint64(a.Asked)) }
func (a Closed) append(b []byte) []byte {
	return appendDuration(appendUint(b, uint64(a.Asked)), a.Age)
}

func (a Unknown) append(b []byte) []byte {
	b = appendUint(appendString(b, a.Why), uint64(len(a.Missing)))
	for _, m := range a.Missing {
		b = appendString(b, m)
	}
	return b
}

func (a Located) append(b []byte) []byte {
	b = appendUint(appendKey(b, a.Key), uint64(len(a.Items)))
	for _, it := range a.Items {
		b = append(b, byte(it.Status))
		switch it.Status {
		case Serving, Claiming:
			b = appendBool(appendUint(b, it.Reg), it.Node)
		case ClosedHere:
			b = appendDuration(b, it.Age)
		}
	}
	return b
}

func (a Explained) append(b []byte) []byte { return appendString(b, a.Observation) }

func (a SlotIs) append(b []byte) []byte {
	b = appendUint(appendSlots(appendKey(b, a.Key), a.Slots), uint64(len(a.Items)))
	for _, it := range a.Items {
		b = appendItem(b, it)
	}
	return b
}

// DecodeAnswer reads an answer. Its error wraps [ErrMalformed].
func DecodeAnswer(b []byte) (Answer, error) {
	r := &reader{b: b}
	a := r.answer()
	if err := r.done(); err != nil {
		return nil, err
	}
	return a, nil
}

func (r *reader) answer() Answer {
	switch code(r.byte()) {
	case codeOK:
		return OK{}
	case codeViewIs:
		return ViewIs{View: r.view()}
	case codeWrongEpoch:
		return WrongEpoch{Key: r.key()}
	case codeNotOwner:
		return NotOwner{Key: r.key()}
	case codeClaimed:
		return Claimed{Key: r.key(), Results: list(r, 1, (*reader).result), Complete: r.slots()}
	case codeDetached:
		return Detached{Key: r.key(), Verdicts: list(r, 1, (*reader).verdict)}
	case codeHit:
		return Hit{Entry: r.entry()}
	case codeNotHere:
		return NotHere{Asked: r.small()}
	case codeClosed:
		return Closed{Asked: r.small(), Age: r.duration()}
	case codeUnknown:
		return Unknown{Why: r.string(), Missing: list(r, 1, (*reader).string)}
	case codeLocated:
		return Located{Key: r.key(), Items: list(r, 1, (*reader).located)}
	case codePong:
		return Pong{Load: r.load(), Key: r.key(), Hears: r.bool(), Heard: r.duration()}
	case codeExplained:
		return Explained{Observation: r.string()}
	case codeSlotIs:
		return SlotIs{Key: r.key(), Slots: r.slots(), Items: list(r, itemSize, (*reader).item)}
	}
	r.fail("unknown answer")
	return nil
}

func (r *reader) verdict() Verdict {
	v := Verdict(r.byte())
	if v > UnknownEpoch {
		r.fail("unknown verdict")
	}
	return v
}

func (r *reader) result() ClaimResult {
	c := ClaimResult{Verdict: r.verdict()}
	if c.Verdict == Held {
		c.Holder = r.entry()
	}
	return c
}

func (r *reader) located() LocatedItem {
	it := LocatedItem{Status: Status(r.byte())}
	switch it.Status {
	case None, NotYours:
	case Serving, Claiming:
		it.Reg, it.Node = r.uint(), r.bool()
	case ClosedHere:
		it.Age = r.duration()
	default:
		r.fail("unknown status")
	}
	return it
}

package claim

import "sync/atomic"

// ledger is one word that orders the attach of a registration against its detach, whichever
// goroutines they are on (C20). Bit 0 says that disposal was asked for, the rest counts rounds that
// are between "about to attach" and "attached". Whoever first sees both "disposed" and "no round inside" releases:
// the disposal itself, else the last round out.
type ledger struct{ word atomic.Uint32 }

const (
	disposed uint32 = 1
	inside   uint32 = 2
)

// enter begins a round. It is refused after disposal: then nothing may be attached.
func (l *ledger) enter() bool {
	for {
		w := l.word.Load()
		if w&disposed != 0 {
			return false
		}
		if l.word.CompareAndSwap(w, w+inside) {
			return true
		}
	}
}

// leave ends a round. It tells whether this round has to release.
func (l *ledger) leave() bool { return l.word.Add(^(inside - 1)) == disposed }

// dispose asks for the end. It tells whether the caller has to release; later calls never do.
func (l *ledger) dispose() bool {
	for {
		w := l.word.Load()
		if w&disposed != 0 {
			return false
		}
		if l.word.CompareAndSwap(w, w|disposed) {
			return w == 0
		}
	}
}

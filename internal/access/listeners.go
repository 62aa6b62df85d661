package access

import (
	"sync"

	"github.com/hubmesh/hubmesh/internal/node"
)

// listeners is the list of who wants to know of changed permissions.
type listeners struct {
	mu   sync.RWMutex // held for reading while listeners are called, so that cancel waits for them
	list map[*func(node.Path)]struct{}
}

func (l *listeners) add(fn func(node.Path)) (cancel func()) {
	key := &fn
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = map[*func(node.Path)]struct{}{}
	}
	l.list[key] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.list, key)
	}
}

func (l *listeners) tell(scope node.Path) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for fn := range l.list {
		(*fn)(scope)
	}
}

package hub

import "fmt"

// remember notes the fingerprint of a message at post, for test builds.
func (m *Mesh) remember(d *Delivery, sum uint64) {
	r := d.rare()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.audited {
		r.audited, r.sum = true, sum
	}
}

// verify panics when a message was changed between post and the end of its turn: a posted message is
// immutable (hub.md §4).
func (m *Mesh) verify(d *Delivery) {
	r := d.extra.Load()
	if r == nil || !r.audited {
		return
	}
	if sum := m.audit(d.msg); sum != r.sum {
		panic(fmt.Sprintf("hub: message '%s' was changed after it was posted", d.info.name))
	}
}

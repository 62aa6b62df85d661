package transport

import "sync"

// clerk tells outcomes that no reader tells: refusals, lapses, the end of a connection. Its goroutine
// runs only while there is something to tell, so that a call after Close is answered as well. The
// queue holds at most one entry for each call whose caller has not been told yet.
type clerk struct {
	mu      sync.Mutex
	queue   []task
	running chan struct{} // closed when the present run ends; nil when none runs
}

type task struct {
	outcome
	do func() // instead of an outcome
}

func (c *clerk) tell(told ...outcome) {
	if len(told) == 0 {
		return
	}
	c.mu.Lock()
	for _, o := range told {
		c.queue = append(c.queue, task{outcome: o})
	}
	c.start()
	c.mu.Unlock()
}

func (c *clerk) do(f func()) {
	c.mu.Lock()
	c.queue = append(c.queue, task{do: f})
	c.start()
	c.mu.Unlock()
}

func (c *clerk) connected(waiters []func(error), err error) {
	for _, w := range waiters {
		c.do(func() { w(err) })
	}
}

func (c *clerk) start() {
	if c.running == nil {
		c.running = make(chan struct{})
		go c.run(c.running)
	}
}

func (c *clerk) run(end chan struct{}) {
	defer close(end)
	var batch []task
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.running = nil
			c.mu.Unlock()
			return
		}
		batch, c.queue = c.queue, batch[:0]
		c.mu.Unlock()
		for i, t := range batch {
			if t.do != nil {
				t.do()
			} else {
				t.done(t.a)
			}
			batch[i] = task{}
		}
	}
}

// idle is closed when everything queued so far has been told.
func (c *clerk) idle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return c.running
	}
	none := make(chan struct{})
	close(none)
	return none
}

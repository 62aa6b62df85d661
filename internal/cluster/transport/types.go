// Package transport (types agreed; the package is built elsewhere).
package transport

import "time"

type Peer struct {
	Name  string
	Epoch uint64
	Addr  string
}
type Class uint8

const (
	Control Class = iota
	Ping
	Read
	Write
)

type Request struct {
	Kind   uint8
	Class  Class
	Body   []byte
	Within time.Duration
}
type Answer struct {
	Body []byte
	Err  error
}
type NotSentError struct {
	Reason string
}

func (e *NotSentError) Error() string { return "not sent: " + e.Reason }

type LostError struct{ Reason string }

func (e *LostError) Error() string { return "lost: " + e.Reason }

type LateError struct{}

func (e *LateError) Error() string { return "no answer in time" }

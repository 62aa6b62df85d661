package message

import "errors"

// Cause is a kind of error that reaches callers in other processes as what it is, so that errors.As and
// errors.Is find it behind a [Failure] there as here. Its exported fields travel; one that has no
// meaning elsewhere is marked `json:"-"`.
type Cause struct {
	Name string // on the wire
	// Find returns the error of this kind in a chain, as a value to encode.
	Find func(err error) (value any, ok bool)
	// Make returns an empty value to decode into, and the error that it is then.
	Make func() (value any, err error)
}

// CauseOf is a kind of error with a type of its own, *E.
func CauseOf[E any, P interface {
	*E
	error
}](name string) Cause {
	return Cause{Name: name,
		Find: func(err error) (any, bool) {
			var e P
			ok := errors.As(err, &e)
			return e, ok
		},
		Make: func() (any, error) {
			e := P(new(E))
			return e, e
		},
	}
}

// CauseIs is an error that is one value.
func CauseIs(name string, value error) Cause {
	return Cause{Name: name,
		Find: func(err error) (any, bool) { return nil, errors.Is(err, value) },
		Make: func() (any, error) { return new(any), value },
	}
}

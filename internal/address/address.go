package address

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxLength is the greatest length of a full address in bytes.
const MaxLength = 4096

// MaxHosts is the greatest number of hosts in a chain (messaging.md §1.10).
const MaxHosts = 50

// Address names a hub: a path of "/"-separated segments and, for a hosted hub, the address of its
// host. The zero value names nothing. Addresses are immutable values.
type Address struct {
	path string
	host *Address
}

// ParseError says why a text is not an address.
type ParseError struct {
	Text   string // cut to 100 bytes
	Reason string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("address '%s': %s", e.Text, e.Reason)
}

func refuse(text, reason string) error {
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return &ParseError{Text: text, Reason: reason}
}

// New returns the address with the given path and no host. Outer slashes are trimmed.
func New(path string) (Address, error) {
	path = strings.Trim(path, "/")
	if err := check(path); err != nil {
		return Address{}, err
	}
	return Address{path: path}, nil
}

// Of returns the address with a path that is known to be legal, such as a validated node path or a
// constant. It does not check.
func Of(path string) Address { return Address{path: path} }

// Parse reads the full form: hosts, outermost first, separated by "~", and the path.
func Parse(full string) (Address, error) {
	if len(full) > MaxLength {
		return Address{}, refuse(full, fmt.Sprintf("longer than %d bytes", MaxLength))
	}
	var host *Address
	rest := full
	for hosts := 0; ; hosts++ {
		if hosts > MaxHosts {
			return Address{}, refuse(full, fmt.Sprintf("more than %d hosts", MaxHosts))
		}
		head, tail, more := strings.Cut(rest, "~")
		a, err := New(head)
		if err != nil {
			return Address{}, refuse(full, err.(*ParseError).Reason)
		}
		a.host = host
		if !more {
			return a, nil
		}
		host, rest = &a, tail
	}
}

func check(path string) error {
	switch {
	case path == "":
		return refuse(path, "empty")
	case len(path) > MaxLength:
		return refuse(path, fmt.Sprintf("longer than %d bytes", MaxLength))
	case !utf8.ValidString(path):
		return refuse("", "not UTF-8")
	case strings.Contains(path, "//"):
		return refuse(path, "an empty segment")
	case strings.Contains(path, "~"):
		return refuse(path, "'~' separates hosts and cannot stand in a path")
	}
	for i := 0; i < len(path); i++ {
		if path[i] < 0x20 || path[i] == 0x7f {
			return refuse("", "a control character")
		}
	}
	return nil
}

// IsZero tells whether the address names nothing.
func (a Address) IsZero() bool { return a.path == "" }

// Path is the path form, without hosts. It is the registry key: type and joined id, blind to the host.
func (a Address) Path() string { return a.path }

// Type is the first segment.
func (a Address) Type() string {
	head, _, _ := strings.Cut(a.path, "/")
	return head
}

// ID is everything after the first segment, joined by "/".
func (a Address) ID() string {
	_, id, _ := strings.Cut(a.path, "/")
	return id
}

// Host returns the address of the host.
func (a Address) Host() (Address, bool) {
	if a.host == nil {
		return Address{}, false
	}
	return *a.host, true
}

// Within returns the address hosted by host.
func (a Address) Within(host Address) Address {
	if host.IsZero() {
		return Address{path: a.path}
	}
	return Address{path: a.path, host: &host}
}

// WithoutHost returns the address with its path alone.
func (a Address) WithoutHost() Address { return Address{path: a.path} }

// String is the full form.
func (a Address) String() string {
	if a.host == nil {
		return a.path
	}
	return a.host.String() + "~" + a.path
}

// Equal compares path and hosts, case-sensitively.
func (a Address) Equal(b Address) bool {
	for {
		if a.path != b.path {
			return false
		}
		if a.host == nil || b.host == nil {
			return a.host == nil && b.host == nil
		}
		a, b = *a.host, *b.host
	}
}

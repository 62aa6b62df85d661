package query

import "fmt"

// SyntaxError says where a query cannot be read, and why. Offset counts bytes from 0.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("query, at byte %d: %s", e.Offset, e.Reason)
}

// UnsupportedError says that a query is well formed and asks for something that is not built.
type UnsupportedError struct {
	Offset  int
	Feature string // such as "source:" or "lists of queries"
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("query, at byte %d: %s are not supported", e.Offset, e.Feature)
}

// WorkError says that the terms of a query would have to look at more than Bytes bytes of nodes.
type WorkError struct{ Bytes int64 }

func (e *WorkError) Error() string {
	return fmt.Sprintf("query: its terms look at more than %d bytes of nodes", e.Bytes)
}

// SizeError says that a result has more than Bytes bytes.
type SizeError struct{ Bytes int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("query: the result has more than %d bytes", e.Bytes)
}

package query

// Query is a parsed query. The zero value matches nothing; make one with [Parse].
type Query struct{}

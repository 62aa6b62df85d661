// Package query is the query language over nodes: its grammar, its matcher and its order.
//
// It is pure: [Parse] turns text into a [Query], [Query.Match] decides one node, [Query.Sort] orders
// and [Query.Limit] bounds. Stores translate what they can into their own terms and run Match over the
// rest, so that every store answers alike. Rules: data.md §5.1. The parser is fuzzed.
package query

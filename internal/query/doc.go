// Package query is the query language over nodes: its grammar, its matcher and its order.
//
// It is pure: [Parse] turns text into a [Query], [Query.Match] decides one node, [Query.Sort] orders,
// and [Query.Collect] does both, with limit and selection, over a sequence of candidates. A store
// finds candidates by [Query.Bounds], in its own terms, and hands them to Collect, so that every store
// answers alike. Rules: data.md §5.1; docs/query.md tells them to users. The parser is fuzzed, and
// hostile text is bounded in bytes, terms and nesting.
package query

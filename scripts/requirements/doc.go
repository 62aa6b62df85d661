// Command requirements writes docs/requirements.md: each rule that hubmesh holds, with the tests that
// prove it.
//
// The rules stand in rules.txt, one a line, in our words. A test cites the rules that it proves in a
// comment directly above its function, above a subtest, or at the end of the subtest's line:
// `// CR-3`, `// invariants 15, 16`, `// data §1.3.6`, `// bad input: NUL in a path`. Go tests (every
// function that takes a *testing.T, *testing.F or testing.TB, so the suites in packages such as
// store/storetest count too) and TypeScript tests (*.test.ts, *.spec.ts) are read. A citation of a
// rule that is not in the list is kept in a table of its own.
//
// With -check the file is compared instead of written; `make test` does that.
package main

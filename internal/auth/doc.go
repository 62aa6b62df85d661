// Package auth knows who calls: API tokens, login codes and browser sessions.
//
// It owns the secrets' form (random, with a checksum), their records in the store's side table (a
// SHA-256 and never the secret), the checks with their three verdicts (valid, invalid, unavailable:
// edge.md §2.6) and the limit on failed attempts. It translates a request into a message.Identity and
// decides nothing about what that identity may do. The HTTP layer calls it through interfaces of its
// own; errors that a caller sees carry the code of the error table in ProblemCode.
//
// Everything is safe for concurrent use. Service.Close waits for what still runs.
package auth

// Package e2e tests the whole program: the built binary, in as many processes as a test wants, on a real
// PostgreSQL server.
//
// Processes are killed, frozen and told to leave by signals, as operators and kernels do it. What a test
// waits for is something that the program says: its first line, the readiness endpoint, an answer, a frame.
// It has no code for others.
package e2e

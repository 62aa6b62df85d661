// Package wire holds the messages that silos exchange about views, slots and claims, and their bytes.
//
// A message is a value without pointers into the sender: it is encoded to bytes and decoded at the
// other end, in the simulation as on a real connection, so that nothing is shared by accident. The
// encoding is written by hand; [Version] goes up with every change of it, and a golden file holds the
// bytes of each version. Decoding refuses what it does not understand and never allocates more than
// the bytes it was given can hold. Rules: protocol.md §3.
package wire

// Package wire holds the messages that silos exchange about views, slots and claims, and their bytes.
//
// A message is a value without pointers into the sender: it is encoded to bytes and decoded at the
// other end, in the simulation as on a real connection, so that nothing is shared by accident. The
// encoding is written by hand; [Version] goes up with every change of it, and a golden file holds the
// bytes of each version. Decoding refuses what it does not understand, an empty address, and more items
// than a frame can honestly hold; it makes no room for a list before its first items have been read.
// Rules: protocol.md §3.
package wire

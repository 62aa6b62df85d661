// Package directory holds which silo serves which address.
//
// Addresses fall into slots, and [Table] gives each slot to one silo of a view, by rendezvous, so that a
// change moves only the slots of who came or went. [Owner] is the state machine of the slots that this
// silo owns: NotOwner, Unsettled until every member has told what it serves or the former owner has handed it
// over, Settled. It grants claims, answers lookups, and never says "not here" before every member has been
// asked; a holder whose entry that brings back is told. [Locator] asks the members, one round an address at a
// time, gathered into few frames. Guards remember the ends of registrations for a while.
//
// Everything runs on one turn; nothing here blocks, starts a goroutine or reads a clock of its own.
// Rules: protocol.md §3, §4, §8; architecture.md decisions 2, 3 and 11; C6, C24, C28 as amended.
package directory

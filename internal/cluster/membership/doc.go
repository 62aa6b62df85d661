// Package membership says which silos there are.
//
// A [View] is an ordered, immutable list of members under a [Key]; a greater key wins, a feed of views
// may skip and never goes back. A silo is known by its [Epoch], a random number that is new at each
// join and compared for equality alone, so that a restart on the same address is another silo. [Silo] is
// the state machine of this process's own place in a [Table] of members: it joins once it has shaken hands with
// every member, beats, votes, leaves, and joins anew when it was put out. [Detector] is the one that judges
// peers by the age of their last pong, and knows a pause of its own when it sees one. [Permit] says until when
// this silo may answer from what it holds, by what they have promised.
//
// It knows no directory and no hub. Where views come from is the caller's: one process alone
// ([Alone]), the controllable table of meshtest, or a database. Rules: architecture.md decision 1,
// protocol.md §1, §2, §7, docs/decisions/permit.md.
package membership

// Package claim makes this silo's claims, and makes them again.
//
// A [Handle] is one registration of a process hub in this process; its [ledger] sees to it that no
// detach overtakes an attach. [Claimant] is the state machine of all registrations of the silo, process
// hubs and node hubs: it claims each at the owner of its slot, once it is registered, again with every
// view, and again when a slot owner opens a new connection. A newer round replaces the older one, whose
// answer no longer counts. Landing ends nothing; only disposal, the end of the silo, and for a node hub another
// incarnation that holds it, an eviction, or a grant that is not had after some tries do.
//
// A registration has no goroutine and no timer: claims are gathered into batches, and a batch that has
// to be repeated has one timer. Everything but the ledger runs on one turn.
// Rules: protocol.md §5; C1, C7–C20 as amended, C32, C33.
package claim

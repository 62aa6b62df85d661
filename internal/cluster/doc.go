// Package cluster makes the hubs of many silos one mesh.
//
// A hub is served by one silo. The map from its address to that silo lives in memory, in slots that the
// members of the view share among themselves, and it is made again with every change of the view.
// [Core] is one silo's part: its view, the slots that it owns, the claims that it makes and the questions
// that it asks, as state machines on one turn.
//
// The life of a claim:
//
//	 process hub registered                                  node path, nobody serves it
//	         │ local route is written                                  │
//	         ▼                                                         ▼
//	     ┌────────┐  view applied, or the slot owner             ┌──────────┐  grant under way:
//	┌───▶│ claim  │◀─ opened a new connection to us ─┐           │ claiming │  deliveries park,
//	│    └───┬────┘   (a newer round replaces)       │           └────┬─────┘  Locate says so
//	│        ▼ to the owner of the address's slot    │                ▼ to the owner of the slot
//	│   NotOwner, wrong epoch, no answer             │     settled: the first claim wins
//	│   └── exchange views, 100 ms·2ⁿ ≤ 2 s ─┐       │     unsettled: every member that has not told
//	│                                        │       │      what it serves is asked first
//	│   Held ── owner asks the incumbent ────┤       │        │           │            │
//	│                                        │       │      Landed       Held      Unsettled, NotOwner,
//	└────────────────────────────────────────┘       │        │           │        no answer, an older view
//	    Landed ── ends nothing: the next view ───────┘        ▼           ▼            │
//	       │                                               granted     go there   again, ≤ 0.5 s apart,
//	       │ disposed: no attach after it (ledger)            │                   now and then asking
//	       ▼                                      ┌───────────┴──────────┐        everybody; after ten
//	    Detach (addr, epoch, registration)        │ stops when idle      │        times given up: Detach,
//	    again until heard; leaves a tombstone     ▼                      ▼        callers are told "unknown"
//	                                           Detach,       a held claim that is told
//	                                        leaves a guard   Held: stop, callers try again
//
// A slot whose owner is new to it is unsettled. It settles when every member has told all that it serves there, or
// at once when the former owner hands over what it had settled; after 2 s with a member missing it grants all the
// same, and marks the grant unsure ([directory.Owner]). A grant counts only where the owner's view is as new as the
// claimant's ([claim.Claimant]).
//
// A lookup that misses is answered only after every member has been asked (Locate); a member that could
// not be asked makes the answer "unknown", never "not here". What a Locate finds is in the directory again, and its
// holder is told (Restored), which warns where its claim had landed and was lost. Whoever is told "not here" by the
// very registration that it was sent to reports it as stale. Between views and connections that differ, the
// triple (address, epoch, registration) orders attach and detach; a claim that is complete for a slot (CompleteFor) has
// the owner remove what the claimant does not name there, but for registrations that are younger than it. No order of
// messages is assumed.
//
// A positive answer ends a Locate, a negative one waits for every member. An owner that does not answer a claim for a
// grant for 0.2 s is not waited for alone: everybody is asked who serves the node, once, and where somebody does the
// claim ends there; where nobody does it goes on, since only the owner grants.
//
// A silo that finds itself in no view is evicted: it has no epoch from then on, kills its node hubs, forgets its
// slots and grants, and joins anew with another epoch, under which its process hubs are claimed again.
//
// Where nobody serves a node and this silo is not the one to serve it (it leaves, does not handle the type, is
// much more loaded), another one is asked to claim it for a caller of its own (place). That is a hint: the slot
// owner grants, and nothing hangs on who was asked.
//
// Below it: membership (who there is), directory (slots), claim, wire (messages), transport, turn.
// Above it: route, which keeps the order of messages while an address moves. It knows no node and no
// store. Rules: architecture.md decisions 1–4, 10, 11; protocol.md; C1–C41 as amended.
package cluster

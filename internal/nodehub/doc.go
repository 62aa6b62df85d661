// Package nodehub is the hub of a node: the one owner of its row, and the operations that create and
// delete nodes.
//
// A node hub is started by the first message to its path with the row that was read to find it, answers
// reads from memory, mints versions, and writes through the process's committer; a reply leaves after
// the commit. Creating and deleting happens on the process hub "portal/nodeops-{id}", reading on behalf
// of the edge is asked from "portal/reads-{id}", which has no handlers, so that a reply never waits
// behind anything. [Service] owns both and the kinds; [Client] is how everybody above asks. Whoever may
// not read a node is answered like whoever asks for a node that is not there.
//
// Rules: data.md §1.2–§1.4, §2.1 as amended, edge.md §2.3; architecture.md decisions 3, 8 and 9.
package nodehub

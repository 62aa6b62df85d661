// Package transporttest is the conformance suite of transport.Transport. Each implementation runs
// [Run] in its tests with a [Rig] that opens silos and breaks what is between them; the names of the
// subtests are the sentences of the contract. The same sentences hold in virtual time, where the rig
// runs each test in a testing/synctest bubble.
package transporttest

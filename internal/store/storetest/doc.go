// Package storetest is the conformance suite of store.Store. Every implementation runs [Run] in its
// tests; the names of the subtests are the sentences of the contract. A third-party store can use it
// as well.
package storetest

// Command mutants takes the rules of the cluster protocol out, one at a time, and shows that the simulation or
// a test notices: go run ./scripts/mutants [-seeds N] [name…]. A name that no mutant has exits with 2.
//
// Each mutant is a few lines of a file replaced in an overlay, so that the product has no switch that
// turns a rule off. A mutant whose text is no longer there is an error: the list follows the code. A rule of
// code that the simulation does not run names the test that has to fail instead.
package main

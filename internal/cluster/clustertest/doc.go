// Package clustertest is the world around the machines of a silo, in the hands of a test.
//
// [Clock] is a turn whose time passes only when the test says so. [Peers] is every other silo: it writes
// down each question that a machine asks, and answers nothing by itself. The test takes a question
// ([Take]) and has it answered, refused, lost or left to lapse, in whatever order it likes, or does
// something else first; so a race is made and not hoped for. Messages go through their bytes, as on a
// connection.
//
// Only tests import it. It knows no claim and no core, so that theirs can use it.
package clustertest

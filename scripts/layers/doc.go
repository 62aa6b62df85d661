// Command layers checks the shape of the code: which package may import which, and the few rules of
// style that a program can decide.
//
// The floors are data, in floors.go; they are the drawing in the architecture page. Only imports are
// parsed for the arrows, so the check takes well under a second. `make test` and CI run it. Each
// finding is a sentence that names the arrow or the line and says what to do.
package main

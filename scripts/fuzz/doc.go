// Command fuzz is `make fuzz`: it finds every fuzz target of the module and runs each for a while, one
// after the other. Arguments are packages to keep to; without any all are run. A failing input is kept
// by the go tool under testdata/fuzz of the package: commit it with the fix.
package main

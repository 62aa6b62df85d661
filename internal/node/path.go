package node

// Path is a validated node path: segments joined by "/", without outer slashes, case-sensitive. The
// zero value "" is the root scope, which holds no node but does hold the root access assignments.
// Make one with [ParsePath] or [Path.Join]; a conversion from string skips the checks and belongs to
// stores that read back what was checked before.
type Path string

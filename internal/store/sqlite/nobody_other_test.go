//go:build !unix

package sqlite_test

import "os/exec"

// asNobody does nothing where there is no root.
func asNobody(*exec.Cmd) {}

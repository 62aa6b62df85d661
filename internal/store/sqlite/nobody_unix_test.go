//go:build unix

package sqlite_test

import (
	"os"
	"os/exec"
	"syscall"
)

// asNobody lets a child run without the rights of root, for whom no permission counts.
func asNobody(child *exec.Cmd) {
	const nobody = 65534
	if os.Getuid() == 0 {
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

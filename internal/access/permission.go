package access

import "strings"

// Permission is a set of permission bits (edge.md §2.1).
type Permission uint16

// The permission bits.
const (
	Read    Permission = 1 << iota
	Create             // 2
	Update             // 4
	Delete             // 8
	Comment            // 16
	Execute            // 32
	Thread             // 64
	API                // 128
	Export             // 256
	Sync               // 512, outside All
	Compile            // 1024, outside All
	// Administer is held by Admin alone, beside the bits of the specification: to read and write the
	// assignments of a scope. Without a bit of its own an Editor could make himself Admin.
	Administer // 2048
)

// All is everything that an ordinary role may hold. Everything adds what only System has in full.
const (
	All        Permission = 511
	Everything            = All | Sync | Compile | Administer
)

var permissionNames = [...]string{
	"Read", "Create", "Update", "Delete", "Comment", "Execute", "Thread", "Api", "Export", "Sync", "Compile", "Administer",
}

// Has tells whether every bit of need is in p. Nothing is needed is always held.
func (p Permission) Has(need Permission) bool { return p&need == need }

// String names the bits, joined by "+"; "None" for no bit.
func (p Permission) String() string {
	var names []string
	for i, name := range permissionNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "None"
	}
	return strings.Join(names, "+")
}

// roles is a set of fixed roles, a bit each.
type roles uint8

const (
	viewer roles = 1 << iota
	commenter
	editor
	admin
	platformAdmin
)

// fixedRoles are the roles and what each holds (edge.md §2.1).
var fixedRoles = [...]struct {
	name string
	bits Permission
}{
	{"Viewer", Read | Execute | API},
	{"Commenter", Read | Comment | API},
	{"Editor", All&^Delete | Compile},
	{"Admin", All | Compile | Administer},
	{"PlatformAdmin", All | Compile | Administer},
}

// RolePermission returns what the named role holds; ok is false for a name that is no role. Names are
// case-sensitive.
func RolePermission(name string) (bits Permission, ok bool) {
	for _, role := range fixedRoles {
		if role.name == name {
			return role.bits, true
		}
	}
	return 0, false
}

func roleNamed(name string) (roles, bool) {
	for i, role := range fixedRoles {
		if role.name == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// permissions is the union of what the roles of a set hold, by set.
var permissions = unions()

func unions() (union [1 << len(fixedRoles)]Permission) {
	for set := range union {
		for i, role := range fixedRoles {
			if set&(1<<i) != 0 {
				union[set] |= role.bits
			}
		}
	}
	return union
}

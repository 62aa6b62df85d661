package store

import (
	"cmp"
	"fmt"

	"github.com/hubmesh/hubmesh/internal/node"
)

// The reasons of *[PartitionError]; a further one begins with "differs in case only from".
const (
	ReasonMissing  = "missing"
	ReasonDeleting = "deleting"
	ReasonNotEmpty = "not empty"
	ReasonInvalid  = "invalid name"
)

// MissingPartition returns the error for a partition that is not provisioned.
func MissingPartition(name string) error {
	return &PartitionError{Partition: name, Reason: ReasonMissing}
}

// CheckPartitionName refuses a name that no partition can have.
func CheckPartitionName(name string) error {
	if err := node.CheckPartition(name); err != nil {
		return &PartitionError{Partition: name, Reason: ReasonInvalid}
	}
	return nil
}

// AdmitPartition decides on provisioning name while known, whose name folds to the same, is there.
func AdmitPartition(known Partition, name string) error {
	switch {
	case known.Name != name:
		return &PartitionError{Partition: name, Reason: fmt.Sprintf("differs in case only from '%s'", known.Name), Other: known.Name}
	case known.Deleting:
		return &PartitionError{Partition: name, Reason: ReasonDeleting}
	}
	return nil
}

// AdmitWrite decides on a write into the partition name; known is the partition whose name folds to
// the same, if there is one.
func AdmitWrite(known Partition, exists bool, name string, op Op) error {
	switch {
	case name == string(node.RootAccess):
		return nil
	case !exists:
		return MissingPartition(name)
	case known.Deleting && op == OpDelete && known.Name == name:
		return nil
	}
	return AdmitPartition(known, name)
}

// InfoOf returns the line of the history for a version of n.
func InfoOf(n node.Node, kind ChangeKind) VersionInfo {
	info := VersionInfo{Version: n.Version, Kind: kind, At: n.ModifiedAt, By: n.ModifiedBy, Name: n.Name}
	if kind == Created {
		info.By = cmp.Or(info.By, n.CreatedBy)
		if info.At.IsZero() {
			info.At = n.CreatedAt
		}
	}
	return info
}

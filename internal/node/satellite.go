package node

import "strings"

// RootAccess is where the access assignments of the root scope are, the only satellite at the top
// level (data.md §1.2).
const RootAccess Path = "_Access"

// SatelliteAccess is the kind of satellite that holds access assignments.
const SatelliteAccess = "_Access"

// satelliteKinds are the segments that make a node a satellite (data.md §1.2). Source and Test hold
// primary content; _Inbox, _Policy, _Provider and _GitSync are ordinary nodes.
var satelliteKinds = [...]string{
	SatelliteAccess, "_Activity", "_UserActivity", "_Thread", "_ThreadMessage",
	"_Comment", "_Approval", "_Tracking", "_Notification",
}

// SatelliteKind returns the canonical spelling of a satellite segment. Whole segments match, in any
// letter case.
func SatelliteKind(segment string) (kind string, ok bool) {
	if len(segment) < 2 || segment[0] != '_' {
		return "", false
	}
	for _, kind := range satelliteKinds {
		if len(kind) == len(segment) && strings.EqualFold(kind, segment) {
			return kind, true
		}
	}
	return "", false
}

// Satellite cuts the path at its first satellite segment: owner is everything before it, kind the
// canonical spelling of the segment. ok is false for a path without one.
func (p Path) Satellite() (owner Path, kind string, ok bool) {
	start := 0
	for start < len(p) {
		end := strings.IndexByte(string(p[start:]), '/')
		if end < 0 {
			end = len(p)
		} else {
			end += start
		}
		if kind, ok := SatelliteKind(string(p[start:end])); ok {
			return p[:max(0, start-1)], kind, true
		}
		start = end + 1
	}
	return "", "", false
}

// Main returns the main node that belongs to the path: the owner of a satellite, else the path
// itself. For an assignment of the root scope it is the root scope.
func (p Path) Main() Path {
	if owner, _, ok := p.Satellite(); ok {
		return owner
	}
	return p
}

// Scope returns the scope that an access assignment at p is about: S for "S/_Access/x". ok is false
// for every other path, the folder "S/_Access" included.
func (p Path) Scope() (scope Path, ok bool) {
	owner, kind, ok := p.Satellite()
	if !ok || kind != SatelliteAccess || p.Depth() < owner.Depth()+2 {
		return "", false
	}
	return owner, true
}

// Hidden tells whether a segment of the path begins with "_", which hides the node from the context
// "search" (data.md §1.2).
func (p Path) Hidden() bool {
	return strings.HasPrefix(string(p), "_") || strings.Contains(string(p), "/_")
}

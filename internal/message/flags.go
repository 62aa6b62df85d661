package message

// Flags are the properties of a message type (messaging.md §1.3, "Markers").
type Flags uint8

const (
	// Request: somebody awaits a reply, so silence is forbidden.
	Request Flags = 1 << iota
	// Ignorable: nobody waits; may be shed under load and is never answered with a failure.
	Ignorable
	// System: needs no identity.
	System
	// Lifecycle: passes every gate and travels in the lifecycle lane.
	Lifecycle
	// NoLog: its content never reaches a log line.
	NoLog
	// Safe: it changes nothing, so that whoever waits for it on a silo that has fallen silent is
	// answered at once instead of when the silo is given up.
	Safe
)

// Has tells whether every flag of g is set.
func (f Flags) Has(g Flags) bool { return f&g == g }

// State is where a delivery stands. Only Submitted is routed or handled (messaging.md §1.3).
type State uint8

// The states of a delivery.
const (
	Submitted State = iota
	Forwarded
	Processed
	NotFoundState
	RejectedState
	FailedState
	IgnoredState
)

var stateNames = [...]string{"Submitted", "Forwarded", "Processed", "NotFound", "Rejected", "Failed", "Ignored"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "State(?)"
}

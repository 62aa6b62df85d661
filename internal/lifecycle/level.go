package lifecycle

// Level is the run level of a hub. Levels are strictly ordered and only rise (messaging.md §1.7).
type Level uint8

// The run levels.
const (
	Starting Level = iota
	Started
	Quiescing
	DisposeHostedHubs
	HostedHubsDisposed
	ShutDown
	Dead
)

var levelNames = [...]string{"Starting", "Started", "Quiescing", "DisposeHostedHubs", "HostedHubsDisposed", "ShutDown", "Dead"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "Level(?)"
}

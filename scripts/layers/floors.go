package main

// module is the prefix of every import path that the floors speak about.
const module = "github.com/hubmesh/hubmesh"

// top is the floor of what may import everything: the root package and the binary.
const top = 6

// floors gives each package its floor. An entry covers the packages below it unless these have an
// entry of their own. A package under internal/ without an entry is an error: say where it belongs.
var floors = map[string]int{
	"internal/address":   0,
	"internal/message":   0,
	"internal/node":      0,
	"internal/budget":    0,
	"internal/filelock":  0,
	"internal/lifecycle": 0,
	"internal/telemetry": 0, // used from every floor; wired at the top

	"internal/store":  1,
	"internal/query":  1,
	"internal/access": 1,

	"internal/hub":             2,
	"internal/cluster":         2,
	"internal/feed":            2,
	"internal/store/memory":    2,
	"internal/store/sqlite":    2,
	"internal/store/postgres":  2,
	"internal/store/files":     2,
	"internal/store/storetest": 2,

	"internal/route":   3,
	"internal/nodehub": 3,
	"internal/mirror":  3,

	"internal/content":      4,
	"internal/render":       4,
	"internal/inbox":        4,
	"internal/events":       4,
	"internal/notify":       4,
	"internal/instancesync": 4,
	"internal/activity":     4,
	"internal/importer":     4,

	"internal/httpapi": 5,
	"internal/auth":    5,
	"internal/mcp":     5,

	"":              top,
	"cmd":           top,
	"meshtest":      top,
	"internal/demo": top, // whole meshes in one process
	"internal/e2e":  top, // tests of the whole program
}

// sameFloor lists the arrows between packages of one floor that the drawing has. Everything else on
// one floor stands alone.
var sameFloor = map[string][]string{
	"internal/message":         {"internal/address", "internal/budget"},
	"internal/lifecycle":       {"internal/budget"},
	"internal/budget":          {"internal/address"},
	"internal/store":           {"internal/query"},
	"internal/store/sqlite":    {"internal/store/storetest"},
	"internal/store/memory":    {"internal/store/storetest"},
	"internal/store/postgres":  {"internal/store/storetest"},
	"internal/store/files":     {"internal/store/storetest"},
	"internal/mirror":          {"internal/route"},
	"internal/importer":        {"internal/activity"},
	"meshtest":                 {""},
	"internal/e2e":             {"", "cmd", "meshtest"},
	"cmd":                      {"", "internal/demo"},
	"internal/demo":            {""},
	"internal/telemetry":       {},
	"internal/store/storetest": {},
}

// outside lists the packages that stand beside the floors, and what of the module they may import.
var outside = map[string][]string{
	"client":         {},
	"web":            {},
	"docs":           {},
	"examples":       {"", "client"},
	"scripts":        {},
	"scripts/verify": {"internal/store/postgres/pgtest"}, // a server beside a phase; it imports nothing of the product
}

// stdOnly are the floors whose packages import the standard library and each other, nothing else.
// Telemetry is the exception: it stands on the metrics and trace libraries.
var stdOnly = map[int]bool{0: true}

var stdOnlyExcept = map[string]bool{"internal/telemetry": true}

// exempt from the rule that a package has a doc.go: examples explain themselves in the program.
var noDoc = []string{"examples"}

// vague are package names that say nothing about what is inside.
var vague = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true, "shared": true,
}

// maxLines is the length above which a file is split where a name can be given.
const maxLines = 600

// deadlineHome is the one package that may make a bare deadline.
const deadlineHome = "internal/budget"

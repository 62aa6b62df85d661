package main

import (
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints what was built, and from what.
func (versionCmd) Run(s std) error {
	built := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				built["revision"] = setting.Value
			case "vcs.time":
				built["time"] = setting.Value
			case "vcs.modified":
				built["modified"] = setting.Value
			}
		}
	}
	return s.print(built)
}

package httpapi

import (
	"embed"
	"net/http"
	"path"
	"strings"
)

const iconPrefix = "/static/NodeTypeIcons/"

//go:embed icons/*.svg
var iconFiles embed.FS

// icons are the built-in icons by name; nothing else is reachable below /static (CR-1).
type icons struct {
	byName map[string]asset
	plain  asset
}

func loadIcons() (*icons, error) {
	set := &icons{byName: map[string]asset{}}
	entries, err := iconFiles.ReadDir("icons")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := iconFiles.ReadFile(path.Join("icons", entry.Name()))
		if err != nil {
			return nil, err
		}
		set.byName[strings.TrimSuffix(entry.Name(), ".svg")] = newAsset(entry.Name(), text)
	}
	set.plain = set.byName["document"]
	return set, nil
}

func (s *Server) getIcon(w http.ResponseWriter, r *http.Request) error {
	parts, err := segments(r, iconPrefix)
	if err != nil {
		return problem("not_found", "there is no such icon")
	}
	name, svg := "", false
	if len(parts) == 1 {
		name, svg = strings.CutSuffix(parts[0], ".svg")
	}
	if !svg || !iconName(name) {
		return problem("not_found", "icons are at "+iconPrefix+"{name}.svg")
	}
	icon, cache := s.icons.plain, cacheAsk // a later program may have the icon
	if known, ok := s.icons.byName[name]; ok {
		icon, cache = known, cacheForever
	}
	icon.serve(w, r, cache)
	return nil
}

func iconName(name string) bool {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return name != ""
}

package web

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

func TestTheBuiltPageIsComplete(t *testing.T) {
	files := Files()
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		t.Fatal(err)
	}

	t.Run("every file that index.html names is embedded", func(t *testing.T) {
		names := regexp.MustCompile(`(?:src|href)="/([^"]+)"`).FindAllStringSubmatch(string(index), -1)
		if len(names) < 3 {
			t.Fatalf("index.html names %d files, want the script, the style sheet and the icon at least", len(names))
		}
		for _, name := range names {
			if _, err := fs.Stat(files, name[1]); err != nil {
				t.Errorf("index.html names %s: %v", name[1], err)
			}
		}
	})

	t.Run("index.html holds no inline script, which the content security policy forbids", func(t *testing.T) {
		for _, script := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(string(index), -1) {
			if strings.TrimSpace(script[1]) != "" {
				t.Errorf("inline script: %.60s", script[1])
			}
		}
		if regexp.MustCompile(`\son[a-z]+="`).Match(index) {
			t.Error("index.html has an inline event handler")
		}
	})

	t.Run("files that are cached for good have a hash in their name", func(t *testing.T) {
		entries, err := fs.ReadDir(files, "_app")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if !regexp.MustCompile(`-[\w-]{8}\.\w+$`).MatchString(entry.Name()) {
				t.Errorf("_app/%s has no hash", entry.Name())
			}
		}
	})
}

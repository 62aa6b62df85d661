package main

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
)

// fingerprints maps each file below dir to the hash of its bytes; a missing dir has none.
func fingerprints(dir string) (map[string][sha256.Size]byte, error) {
	prints := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		prints[name] = sha256.Sum256(text)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return prints, err
}

// differences names the files that one side lacks or has with other bytes.
func differences(a, b map[string][sha256.Size]byte) []string {
	var names []string
	for name, print := range a {
		if other, ok := b[name]; !ok || other != print {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// Package tables is what the stores that keep nodes in SQL tables have in common: the form of a path whose
// order is path order, numbered migrations, and how rows become listings. It stands on store and node.
package tables

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Separator stands for "/" in a key: no path holds it, and it sorts before all that a path may hold.
const Separator = "\x01"

// Key is the form of a path whose order is path order.
func Key(path node.Path) string { return strings.ReplaceAll(string(path), "/", Separator) }

// Path is the reverse of [Key].
func Path(key string) node.Path { return node.Path(strings.ReplaceAll(key, Separator, "/")) }

// Below returns the range of the keys of everything below path: from < key < to.
func Below(path node.Path) (from, to string) {
	if path == "" {
		return "", "\x7f" // the first segment is ASCII
	}
	key := Key(path)
	return key + Separator, key + "\x02"
}

// Step is one numbered migration of a schema.
type Step struct {
	Number int
	Name   string
	SQL    string
	Digest []byte // of SQL; tells whether a schema was made by this very step
}

// Steps returns the files migrations/NUMBER_name.sql, which are numbered from 1 without a gap.
func Steps(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []Step
	for i, name := range names { // Glob sorts
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, title, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql"), "_")
		digest := sha256.Sum256(text)
		step := Step{Name: title, SQL: string(text), Digest: digest[:]}
		if step.Number, err = strconv.Atoi(number); err != nil || step.Number != i+1 {
			return nil, fmt.Errorf("migration %s is not number %d", name, i+1)
		}
		all = append(all, step)
	}
	return all, nil
}

// Newer is the refusal of a schema that a newer program has written.
func Newer(schema, known int, hint string) error {
	return &store.UnavailableError{
		Kind: store.UnavailableNewer, Op: "open", Hint: hint,
		Err: fmt.Errorf("a newer program has written the database: its schema is %d, this program knows %d", schema, known),
	}
}

// Otherwise is the refusal of a schema that another form of a step has made.
func Otherwise(step Step, hint string) error {
	return &store.UnavailableError{
		Kind: store.UnavailableNewer, Op: "open", Hint: hint,
		Err: fmt.Errorf("the database was made by a program whose migration %d (%s) is another one", step.Number, step.Name),
	}
}

// Entry returns a listing's entry for a child of base, and whether it belongs to the main nodes. n is nil
// where the level has no node of its own; hasChildren tells whether main nodes stand below.
func Entry(base node.Path, segment string, n *node.Node, hasChildren bool) (entry store.Entry, main bool) {
	entry = store.Entry{Path: node.Path(segment), Node: n, HasChildren: hasChildren}
	if base != "" {
		entry.Path = base + "/" + entry.Path
	}
	main = hasChildren || n != nil && !n.IsSatellite()
	if _, satellite := node.SatelliteKind(segment); satellite {
		main = false
	}
	return entry, main
}

// descendantsPage is how many keys are read at a time.
const descendantsPage = 1000

// Descendants yields the paths below path, reading their keys page by page, so that nothing is held while
// the caller works.
func Descendants(ctx context.Context, path node.Path, keys func(ctx context.Context, from, to string, limit int) ([]string, error)) iter.Seq2[node.Path, error] {
	return func(yield func(node.Path, error) bool) {
		from, to := Below(path)
		for {
			page, err := keys(ctx, from, to, descendantsPage)
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range page {
				if !yield(Path(key), nil) {
					return
				}
				from = key
			}
			if len(page) < descendantsPage {
				return
			}
		}
	}
}

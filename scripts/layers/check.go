package main

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"sort"
	"strings"
)

// check returns a sentence for each thing that is wrong, in the order of the files.
func check(files []sourceFile) []string {
	var found []string
	documented, sources := map[string]bool{}, map[string]int{}
	for _, f := range files {
		if !f.test {
			sources[f.dir]++
		}
	}
	for _, f := range files {
		// A package of one file may say it there.
		if path.Base(f.name) == "doc.go" || sources[f.dir] == 1 && !f.test && f.syntax.Doc != nil {
			documented[f.dir] = true
		}
	}
	missing := map[string]bool{}
	for _, f := range files {
		found = append(found, arrows(f)...)
		found = append(found, style(f)...)
		if !f.test && !documented[f.dir] && !missing[f.dir] && !within(f.dir, noDoc) {
			missing[f.dir] = true
			found = append(found, fmt.Sprintf("%s has no doc.go: say in about ten lines what the package owns, who may call it and which rules it holds", name(f.dir)))
		}
	}
	return found
}

// arrows checks the imports of one file.
func arrows(f sourceFile) []string {
	var found []string
	if f.test && strings.HasSuffix(f.pkg, "_test") {
		return nil // a package of its own, which stands beside what it tests and puts it together with others
	}
	if _, placed := lookup(floors, f.dir); !placed {
		if _, beside := lookup(outside, f.dir); !beside {
			return []string{fmt.Sprintf("%s: %s has no floor: give it one in scripts/layers/floors.go", f.name, name(f.dir))}
		}
	}
	targets := make([]string, 0, len(f.imports))
	for target := range f.imports {
		targets = append(targets, target)
	}
	sort.Strings(targets)
	for _, target := range targets {
		if sentence := arrow(f, target); sentence != "" {
			found = append(found, fmt.Sprintf("%s: %s", f.imports[target], sentence))
		}
	}
	return found
}

func arrow(f sourceFile, target string) string {
	from := f.dir
	to, own := ownPackage(target)
	if rule, ok := lookup(outside, from); ok {
		if !own || within(to, []string{rule}) || allowed(outside[rule], to) {
			return ""
		}
		return fmt.Sprintf("%s imports %s: what stands under %s/ may import of this module %s only", name(from), name(to), rule, list(outside[rule]))
	}
	entry, _ := lookup(floors, from)
	floor := floors[entry]
	if !own {
		if stdOnly[floor] && !stdOnlyExcept[entry] && !f.test && strings.Contains(strings.SplitN(target, "/", 2)[0], ".") {
			return fmt.Sprintf("%s (floor %d) imports %s: this floor stands on the standard library alone", name(from), floor, target)
		}
		return ""
	}
	if _, beside := lookup(outside, to); beside {
		if floor == top || f.test {
			return ""
		}
		return fmt.Sprintf("%s (floor %d) imports %s, which stands beside the floors: only the top may", name(from), floor, name(to))
	}
	toEntry, ok := lookup(floors, to)
	if !ok {
		return fmt.Sprintf("%s imports %s, which has no floor: give it one in scripts/layers/floors.go", name(from), name(to))
	}
	toFloor := floors[toEntry]
	switch {
	case toFloor < floor || entry == toEntry:
		return ""
	case toFloor > floor:
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d): the arrow points upwards; let the upper one pass an interface down", name(from), floor, name(to), toFloor)
	case slices.Contains(sameFloor[entry], toEntry):
		return ""
	default:
		return fmt.Sprintf("%s imports %s, both on floor %d: the drawing has no such arrow; define a small interface where it is used", name(from), name(to), floor)
	}
}

// ownPackage cuts the module's prefix off an import path.
func ownPackage(target string) (string, bool) {
	if target == module {
		return "", true
	}
	return strings.CutPrefix(target, module+"/")
}

// lookup finds the entry that covers dir: its own or that of the nearest folder above it. The root's
// entry covers the root alone.
func lookup[V any](table map[string]V, dir string) (string, bool) {
	for at := dir; ; at = strings.TrimPrefix(path.Dir(at), ".") {
		if _, ok := table[at]; ok && (at != "" || dir == "") {
			return at, true
		}
		if at == "" {
			return "", false
		}
	}
}

func within(dir string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return dir == folder || strings.HasPrefix(dir, folder+"/")
	})
}

// allowed is like within, except that the root covers itself alone.
func allowed(folders []string, dir string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return dir == folder || folder != "" && strings.HasPrefix(dir, folder+"/")
	})
}

func name(dir string) string {
	if dir == "" {
		return "the root package"
	}
	return dir
}

func list(dirs []string) string {
	if len(dirs) == 0 {
		return "nothing"
	}
	names := make([]string, len(dirs))
	for i, dir := range dirs {
		names[i] = name(dir)
	}
	return strings.Join(names, " and ")
}

// style checks what else a program can decide about one file.
func style(f sourceFile) []string {
	var found []string
	if vague[strings.TrimSuffix(f.pkg, "_test")] {
		found = append(found, fmt.Sprintf("%s: package %s says nothing about what is inside: name the idea", f.name, f.pkg))
	}
	if !f.test && f.lines > maxLines && !ast.IsGenerated(f.syntax) {
		found = append(found, fmt.Sprintf("%s has %d lines, more than %d: split it where a name can be given", f.name, f.lines, maxLines))
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		at := f.fset.Position(selector.Pos())
		switch call := pkg.Name + "." + selector.Sel.Name; {
		case call == "time.Sleep" && f.test:
			found = append(found, fmt.Sprintf("%s: a test does not sleep: wait on a signal, or use virtual time (testing/synctest)", at))
		case (call == "context.WithTimeout" || call == "context.WithDeadline") && !f.test && !within(f.dir, []string{deadlineHome}):
			found = append(found, fmt.Sprintf("%s: %s names no bound: take it from %s, or give it a named cause", at, call, deadlineHome))
		}
		return true
	})
	return found
}

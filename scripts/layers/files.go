package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

// sourceFile is what the checks look at of one Go file.
type sourceFile struct {
	name    string // slash-separated, relative to the module
	dir     string // "" for the root
	pkg     string // name in the package clause
	test    bool
	lines   int
	imports map[string]token.Position // import path → where
	syntax  *ast.File
	fset    *token.FileSet
}

// load parses every Go file of the module; folders of other modules, of tools and of test data are
// left out.
func load(root fs.FS) ([]sourceFile, error) {
	var files []sourceFile
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && skipDir(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parse(root, name)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	sort.Slice(files, func(i, j int) bool { return files[i].name < files[j].name })
	return files, err
}

func skipDir(root fs.FS, name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := fs.Stat(root, path.Join(name, "go.mod"))
	return err == nil
}

func parse(root fs.FS, name string) (sourceFile, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return sourceFile{}, err
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return sourceFile{}, fmt.Errorf("%s does not parse: %w", name, err)
	}
	f := sourceFile{
		name: name, dir: strings.TrimPrefix(path.Dir(name), "."), pkg: syntax.Name.Name,
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(text, []byte("\n")), imports: map[string]token.Position{},
		syntax: syntax, fset: fset,
	}
	for _, spec := range syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return sourceFile{}, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		f.imports[target] = fset.Position(spec.Pos())
	}
	return f, nil
}

// run checks the module in root and reports to out; it returns the exit code.
func run(root fs.FS, out, errs io.Writer) int {
	files, err := load(root)
	if err != nil {
		fmt.Fprintln(errs, "layers:", err)
		return 2
	}
	found := check(files)
	for _, sentence := range found {
		fmt.Fprintln(errs, sentence)
	}
	if len(found) > 0 {
		fmt.Fprintf(errs, "layers: %d findings in %d files\n", len(found), len(files))
		return 1
	}
	fmt.Fprintf(out, "layers: %d files keep to the floors\n", len(files))
	return 0
}

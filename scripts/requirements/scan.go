package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// proof is one test that cites one rule.
type proof struct {
	rule string
	test string // function, and subtest where the citation stands at one
	file string
}

// scan reads every test below root.
func scan(root fs.FS) ([]proof, error) {
	var proofs []proof
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "dist") ||
				name == "scripts/requirements" {
				return fs.SkipDir
			}
			return nil
		}
		var read func([]byte, string) ([]proof, error)
		switch {
		case strings.HasSuffix(base, ".go"):
			read = goProofs
		case strings.HasSuffix(base, ".test.ts") || strings.HasSuffix(base, ".spec.ts") || strings.HasSuffix(base, ".test.tsx"):
			read = tsProofs
		default:
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		found, err := read(text, name)
		proofs = append(proofs, found...)
		return err
	})
	return proofs, err
}

// goProofs reads the citations of one Go file.
func goProofs(text []byte, name string) ([]proof, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var proofs []proof
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || !takesTest(fn.Type) {
			continue
		}
		if fn.Doc != nil {
			for _, r := range citations(fn.Doc.Text()) {
				proofs = append(proofs, proof{rule: r, test: fn.Name.Name, file: name})
			}
		}
		if fn.Body == nil {
			continue
		}
		names := namesByLine(fset, fn.Body)
		for _, group := range file.Comments {
			if group.Pos() < fn.Body.Pos() || group.End() > fn.Body.End() {
				continue
			}
			test := fn.Name.Name
			first, last := fset.Position(group.Pos()).Line, fset.Position(group.End()).Line
			if sub, ok := names[first]; ok {
				test += "/" + sub
			} else if sub, ok := names[last+1]; ok {
				test += "/" + sub
			}
			for _, r := range citations(group.Text()) {
				proofs = append(proofs, proof{rule: r, test: test, file: name})
			}
		}
	}
	return proofs, nil
}

// takesTest tells whether a function has a parameter of package testing.
func takesTest(fn *ast.FuncType) bool {
	for _, param := range fn.Params.List {
		typ := param.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if selector, ok := typ.(*ast.SelectorExpr); ok {
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "testing" {
				return true
			}
		}
	}
	return false
}

// namesByLine gives for each line that names a subtest its name: the first string of a t.Run call, of
// an element of a table, or of its name field.
func namesByLine(fset *token.FileSet, body *ast.BlockStmt) map[int]string {
	names := map[int]string{}
	add := func(at token.Pos, e ast.Expr) {
		literal, ok := e.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		if text, err := strconv.Unquote(literal.Value); err == nil {
			for _, line := range []int{fset.Position(at).Line, fset.Position(literal.Pos()).Line} {
				if _, taken := names[line]; !taken {
					names[line] = text
				}
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Run" && len(n.Args) > 0 {
				add(n.Pos(), n.Args[0])
			}
		case *ast.CompositeLit:
			if len(n.Elts) == 0 {
				return true
			}
			if pair, ok := n.Elts[0].(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "name" {
					add(n.Pos(), pair.Value)
				}
				return true
			}
			if n.Type == nil { // an element of a table
				add(n.Pos(), n.Elts[0])
			}
		}
		return true
	})
	return names
}

var (
	tsComment = regexp.MustCompile(`^\s*//\s*(.*)$`)
	tsTest    = regexp.MustCompile("^\\s*(?:await )?(?:it|test)(?:\\.\\w+)*\\(\\s*(?:'([^']*)'|\"([^\"]*)\"|`([^`]*)`)")
)

// tsProofs reads the citations of one TypeScript file: comment lines directly above it(…) or test(…).
func tsProofs(text []byte, name string) ([]proof, error) {
	var proofs []proof
	var above []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if m := tsComment.FindStringSubmatch(line); m != nil {
			above = append(above, m[1])
			continue
		}
		if m := tsTest.FindStringSubmatch(line); m != nil {
			for _, r := range citations(strings.Join(above, "\n")) {
				proofs = append(proofs, proof{rule: r, test: m[1] + m[2] + m[3], file: name})
			}
		}
		above = nil
	}
	return proofs, nil
}

// byRule groups proofs, each test once.
func byRule(proofs []proof) map[string][]proof {
	grouped := map[string][]proof{}
	seen := map[proof]bool{}
	for _, p := range proofs {
		if !seen[p] {
			seen[p] = true
			grouped[p.rule] = append(grouped[p.rule], p)
		}
	}
	for _, list := range grouped {
		sort.Slice(list, func(i, j int) bool {
			if list[i].file != list[j].file {
				return list[i].file < list[j].file
			}
			return list[i].test < list[j].test
		})
	}
	return grouped
}

package arch

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// featuresPage lists the features: a row has the feature, where it is, and what shows it.
const featuresPage = "docs/features.md"

var (
	inCode   = regexp.MustCompile("`([^`]*)`")
	ofTree   = regexp.MustCompile(`^([a-z][a-z0-9/]*)\.([A-Z][A-Za-z0-9_]*(?:\.[A-Z][A-Za-z0-9_]*)?)$`)
	docsLink = regexp.MustCompile(`\]\(([^)#:\s]+)\)`)
	fenced   = regexp.MustCompile("(?s)```.*?```")
)

// Every feature on the page has a test or an example that shows it, and all that is named exists.
func TestFeaturesAreShownByTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), featuresPage))
	if err != nil {
		t.Fatal(err)
	}
	tests, names := testsByPackage(t), make(map[string][]string)
	features := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| Feature ") {
			continue
		}
		features++
		for _, span := range inCode.FindAllStringSubmatch(line, -1) {
			checkSpan(t, featuresPage, span[1], tests, names)
		}
		cells := strings.Split(strings.TrimSpace(line), " | ")
		switch {
		case len(cells) < 3:
			t.Errorf("%s: a row of less than three cells: %s", featuresPage, line)
		case !inCode.MatchString(cells[2]):
			t.Errorf("%s: %q is to be shown by a test", featuresPage, cells[0])
		}
	}
	if features < 90 {
		t.Errorf("%s has only %d features", featuresPage, features)
	}
}

// checkSpan looks up a name such as `step.Do`, `retry.Policy.MaxWait` or `engine.TestKillAtEveryCommit`. Other code is
// left alone.
func checkSpan(t *testing.T, page, span string, tests map[string]bool, names map[string][]string) {
	t.Helper()
	m := ofTree.FindStringSubmatch(span)
	if m == nil {
		return
	}
	dir, name := m[1], m[2]
	if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") {
		if !tests[span] {
			t.Errorf("%s names %s, and there is no such test or example", page, span)
		}
		return
	}
	if _, err := os.Stat(filepath.Join(root(t), dir)); err != nil {
		t.Errorf("%s names %s, and there is no package %s", page, span, dir)
		return
	}
	if names[dir] == nil {
		names[dir] = exported(t, dir)
	}
	if !slices.Contains(names[dir], name) {
		t.Errorf("%s names %s, and package %s does not have it", page, span, dir)
	}
}

// testsByPackage lists the tests and examples of the tree as "dir.Name".
func testsByPackage(t *testing.T) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	for path, text := range sources(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range declaredTest.FindAllStringSubmatch(text, -1) {
			all[filepath.ToSlash(filepath.Dir(path))+"."+m[1]] = true
		}
	}
	return all
}

// exported lists what a package exports: "Do", "Policy", "Policy.MaxWait", "Run.Cancel".
func exported(t *testing.T, dir string) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	paths, err := filepath.Glob(filepath.Join(root(t), dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, module+dir)
	if err != nil {
		t.Fatal(err)
	}
	values := slices.Concat(p.Consts, p.Vars)
	funcs := p.Funcs
	for _, typ := range p.Types {
		names = append(names, typ.Name)
		values, funcs = slices.Concat(values, typ.Consts, typ.Vars), slices.Concat(funcs, typ.Funcs)
		for _, m := range typ.Methods {
			names = append(names, typ.Name+"."+m.Name)
		}
		names = append(names, fieldsOf(typ)...)
	}
	for _, v := range values {
		names = append(names, v.Names...)
	}
	for _, f := range funcs {
		names = append(names, f.Name)
	}
	return names
}

// fieldsOf lists the fields of a struct, or the methods of an interface, as "Type.Field".
func fieldsOf(typ *doc.Type) (names []string) {
	for _, spec := range typ.Decl.Specs {
		s, ok := spec.(*ast.TypeSpec)
		if !ok || s.Name.Name != typ.Name {
			continue
		}
		var fields *ast.FieldList
		switch x := s.Type.(type) {
		case *ast.StructType:
			fields = x.Fields
		case *ast.InterfaceType:
			fields = x.Methods
		default:
			continue
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				names = append(names, typ.Name+"."+n.Name)
			}
		}
	}
	return names
}

// What a page calls by its package is there: `step.Do`, `engine.Config.Logger`, `builder.TestX`.
func TestPagesNameWhatExists(t *testing.T) {
	tests, names, found := testsByPackage(t), make(map[string][]string), 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range inCode.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
			m := ofTree.FindSubmatch(span[1])
			if m == nil {
				continue
			}
			if _, err := os.Stat(filepath.Join(root(t), string(m[1]))); err == nil {
				checkSpan(t, filepath.Base(page), string(span[1]), tests, names)
				found++
			}
		}
	}
	if found < 200 {
		t.Errorf("the pages name only %d things of the tree", found)
	}
}

// pages lists the README and the pages of the docs.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(all, filepath.Join(root(t), "README.md"))
}

// A page links to files that are there.
func TestLinksOfTheDocsLeadSomewhere(t *testing.T) {
	decisions, err := filepath.Glob(filepath.Join(root(t), "docs", "decisions", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range slices.Concat(pages(t), decisions, []string{filepath.Join(root(t), "CHANGELOG.md")}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docsLink.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(string(m[1])))); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.Base(page), m[1])
			}
		}
	}
}

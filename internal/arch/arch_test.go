package arch

import (
	"errors"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tasq-dev/tasq/"

// layerTable is the order of the packages, by docs/architecture.md: each may import those of lower layers. A new package fails until it
// has a place there.
type layerTable map[string]int

func layers(t *testing.T) layerTable {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(layerTable)
	for _, row := range layerRow.FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(row[1]) // digits, by the expression
		for pkg := range strings.SplitSeq(row[2], ", ") {
			pkg = strings.Trim(pkg, "`")
			if _, twice := all[pkg]; twice {
				t.Errorf("docs/architecture.md has package %s in two layers", pkg)
			}
			all[pkg] = n
		}
	}
	return all
}

// layerRow is a row of the table of layers: a number, what the layer is, and its packages.
var layerRow = regexp.MustCompile("(?m)^\\| (-?\\d+) \\| [^|]* \\| (`[^|]*`) \\|$")

// of finds the layer of a package; an entry that ends in * is for all packages of a folder that have none of their own.
func (all layerTable) of(pkg string) (int, bool) {
	if n, ok := all[pkg]; ok {
		return n, true
	}
	n, ok := all[path.Dir(pkg)+"/*"]
	return n, ok
}

// pure packages do no I/O and read no clock.
var pure = []string{
	"store/state", "net", "net/internal/graph", "net/internal/statespace", "net/internal/reduce", "net/verify", "net/svg", "workitem",
	"engine/internal/kernel", "engine/internal/quota", "limit", "schedule",
}

var impure = []string{"os", "database/sql", "log/slog", "math/rand", "math/rand/v2", "net/http"}

func TestImportsPointDown(t *testing.T) {
	all, found := layers(t), packages(t)
	for dir := range all {
		if found[dir] == nil && !strings.HasSuffix(dir, "/*") {
			t.Errorf("docs/architecture.md gives a layer to %s, which is no package", dir)
		}
	}
	for dir, pkg := range found {
		layer, ok := all.of(dir)
		if !ok {
			t.Errorf("package %s has no layer: give it one in the table of docs/architecture.md", dir)
			continue
		}
		for _, imported := range pkg.Imports {
			ours, is := strings.CutPrefix(imported, module)
			if !is {
				continue
			}
			if below, ok := all.of(ours); ok && below >= layer {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports point down", dir, layer, ours, below)
			}
		}
	}
}

func TestPurePackagesDoNoIO(t *testing.T) {
	all := packages(t)
	for _, dir := range pure {
		for _, path := range all[dir].Imports {
			if slices.Contains(impure, path) {
				t.Errorf("package %s is pure, and imports %s", dir, path)
			}
		}
	}
}

func TestOnlyDomainImportsTheValidator(t *testing.T) {
	for dir, pkg := range packages(t) {
		for _, path := range pkg.Imports {
			if strings.HasPrefix(path, "github.com/go-playground/validator") && dir != "domain" {
				t.Errorf("package %s imports the validator; only package domain does", dir)
			}
		}
	}
}

var (
	timeNow = regexp.MustCompile(`\btime\.Now\(`)
	sleeps  = regexp.MustCompile(`\btime\.Sleep\(`)
)

// The clock is injected: the system's is read in one place, and tests do not wait for it.
func TestTimeIsInjected(t *testing.T) {
	for path, text := range sources(t) {
		if strings.HasPrefix(path, "internal/arch/") {
			continue
		}
		test := strings.HasSuffix(path, "_test.go")
		if !test && timeNow.MatchString(text) && !slices.Contains(mayReadTheClock, path) {
			t.Errorf("%s reads the system's clock; take a retry.Clock, or the time, as an argument", path)
		}
		if test && sleeps.MatchString(text) {
			t.Errorf("%s sleeps; use the virtual clock, or testing/synctest", path)
		}
	}
}

// mayReadTheClock lists the files that do, and why.
var mayReadTheClock = []string{
	"retry/clock.go",                // the system clock itself
	"recipes/airetry/chat/error.go", // a Retry-After that names a moment, which only the wall clock can tell from now
}

func TestFilesFitInAHead(t *testing.T) {
	for path, text := range sources(t) {
		most := 400
		if strings.HasSuffix(path, "_test.go") {
			most = 600
		}
		if n := strings.Count(text, "\n"); n > most {
			t.Errorf("%s has %d lines; a file should fit in a head, %d is the limit", path, n, most)
		}
	}
}

// Every exported name has a doc comment, and every package one that teaches.
func TestEverythingExportedHasWords(t *testing.T) {
	for dir := range packages(t) {
		fset := token.NewFileSet()
		var files []*ast.File
		paths, _ := filepath.Glob(filepath.Join(root(t), dir, "*.go"))
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(fset, files, module+dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Doc) < 40 {
			t.Errorf("package %s has no comment that says what it is for", dir)
		}
		for _, v := range slices.Concat(p.Consts, p.Vars) {
			checkValue(t, dir, v)
		}
		checkFuncs(t, dir, p.Funcs)
		for _, typ := range p.Types {
			if typ.Doc == "" {
				t.Errorf("%s.%s has no doc comment", dir, typ.Name)
			}
			checkFuncs(t, dir, slices.Concat(typ.Funcs, typ.Methods))
			for _, v := range slices.Concat(typ.Consts, typ.Vars) {
				checkValue(t, dir, v)
			}
		}
	}
}

func checkFuncs(t *testing.T, dir string, funcs []*doc.Func) {
	for _, f := range funcs {
		if f.Doc == "" && !slices.Contains([]string{"Len", "Less", "Swap"}, f.Name) {
			t.Errorf("%s: %s%s has no doc comment", dir, f.Recv, " "+f.Name)
		}
	}
}

func checkValue(t *testing.T, dir string, v *doc.Value) {
	if v.Doc == "" {
		for _, spec := range v.Decl.Specs {
			if s, ok := spec.(*ast.ValueSpec); ok && s.Doc == nil && s.Comment == nil {
				t.Errorf("%s: %v has no doc comment", dir, v.Names)
				return
			}
		}
	}
}

// packages lists the module's packages by folder.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listed looks for the packages once, for all tests.
var listed = sync.OnceValues(func() (map[string]*build.Package, error) {
	all := make(map[string]*build.Package)
	top, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); strings.HasPrefix(name, ".") && path != top || name == "testdata" {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != top {
			return filepath.SkipDir
		}
		pkg, err := build.ImportDir(path, 0)
		if err != nil {
			return nil // no Go files here
		}
		dir, err := filepath.Rel(top, path)
		all[filepath.ToSlash(dir)] = pkg
		return err
	})
	return all, err
})

// sources returns the text of the module's Go files by path.
func sources(t *testing.T) map[string]string {
	t.Helper()
	texts, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// read reads the files once, for all tests.
var read = sync.OnceValues(func() (map[string]string, error) {
	top, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	all, err := listed()
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for dir, pkg := range all {
		for _, name := range slices.Concat(pkg.GoFiles, pkg.TestGoFiles, pkg.XTestGoFiles) {
			data, err := os.ReadFile(filepath.Join(top, dir, name))
			if err != nil {
				return nil, err
			}
			texts[dir+"/"+name] = string(data)
		}
	}
	return texts, nil
})

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above this test")
		}
		dir = parent
	}
}

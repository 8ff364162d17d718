package arch

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tasq-dev/tasq/"

// layers is the order of the packages: each may import those of lower layers. A new package fails until it has a place
// here; see layerOf for the recipes.
var layers = map[string]int{
	"internal/pgtest": -1, "internal/testsize": -1, // a server for tests, and how much they try
	"internal/pgtest/pgproxy": -1,                           // a way to it that tests break
	"internal/spelling":       -1, "internal/printable": -1, // text, for every package
	"internal/readable":  -1, // errors of users, for what calls their functions
	"net/internal/graph": -1, // algorithms, for net and what is above it

	"net": 0, "net/internal/xmlread": 0, "workitem": 0, "domain": 0, "retry": 0, "schedule": 0,
	"internal/virtual": 0, "recipes/airetry/chat": 0, "recipes/airetry/fakechat": 0,

	"limit": 1, "process": 1, "net/pnml": 1, "net/yawl": 1, "net/bpmn": 1, "net/svg": 1, "net/internal/statespace": 1, "activities": 1, "internal/modeltest": 1,

	"net/internal/reduce": 2, "step": 2,

	"net/verify": 3,

	"store/state": 1, "internal/sqlkit": 1, "engine/internal/alarm": 1,

	"workflow": 4,

	"store": 5, "store/internal/tables": 6, "store/eventlog": 6,

	"builder": 6, "engine/internal/kernel": 6, "store/sqlite": 7, "store/postgres": 7, "store/storetest": 6, "step/steptest": 6,
	"internal/story":    4,
	"internal/transfer": 6, "internal/integrity": 6, "internal/storehook": 6, "internal/record": 6, "engine/why": 6, "engine/internal/fault": 6, "engine/internal/ration": 6, "engine/internal/registry": 6,

	"engine/internal/admission": 7, "engine/internal/mailbox": 7, "engine/internal/fleet": 7, "engine/internal/notify": 7,
	"engine/internal/retention": 7, "engine/internal/commit": 7,

	"engine/bulk": 7, "engine/schedules": 7, "engine/internal/command": 8, "engine/internal/dispatch": 8,

	"engine": 9, "cmd/tasq/internal/database": 9,

	"admin/internal/query": 7, "admin/internal/mask": 7, "admin/internal/access": 6, "admin/internal/source": 10, "admin/internal/api": 11, "admin/internal/live": 11,
	"admin/internal/past": 6, "admin/internal/view": 12, "admin": 13, "engine/runs": 10, "internal/scenario": 10,

	"engine/enginetest": 11, "cmd/tasq/internal/serve": 14, "cmd/tasq/internal/demo": 15, "cmd/tasq/internal/model": 11,

	"cmd/tasq/internal/check": 12,

	"cmd/tasq/internal/cli": 16,

	"cmd/tasq": 17, "internal/arch": 17,
}

func layerOf(pkg string) (int, bool) {
	if n, ok := layers[pkg]; ok {
		return n, true
	}
	if strings.HasPrefix(pkg, "recipes/") { // definitions: builder and below
		return 7, true
	}
	return 0, false
}

// pure packages do no I/O and read no clock.
var pure = []string{
	"store/state", "net", "net/internal/graph", "net/internal/statespace", "net/internal/reduce", "net/verify", "net/svg", "workitem",
	"engine/internal/kernel", "engine/internal/ration", "limit", "schedule",
}

var impure = []string{"os", "database/sql", "log/slog", "math/rand", "math/rand/v2", "net/http"}

func TestImportsPointDown(t *testing.T) {
	for dir, pkg := range packages(t) {
		layer, ok := layerOf(dir)
		if !ok {
			t.Errorf("package %s has no layer: give it one in the table of this test", dir)
			continue
		}
		for _, path := range pkg.Imports {
			ours, is := strings.CutPrefix(path, module)
			if !is {
				continue
			}
			if below, ok := layerOf(ours); ok && below >= layer {
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
	all := make(map[string]*build.Package)
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
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
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sources reads the module's Go files by path.
func sources(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for dir, pkg := range packages(t) {
		for _, name := range slices.Concat(pkg.GoFiles, pkg.TestGoFiles, pkg.XTestGoFiles) {
			data, err := os.ReadFile(filepath.Join(root(t), dir, name))
			if err != nil {
				t.Fatal(err)
			}
			texts[dir+"/"+name] = string(data)
		}
	}
	return texts
}

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above this test")
		}
		dir = parent
	}
}

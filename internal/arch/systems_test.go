package arch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// Every package of the module has correct types on the systems that run no tests. Their types are read from the source of all that is
// imported, which takes a sixth of the time of a build for each system.
func TestTypesOnOtherSystems(t *testing.T) {
	if !testsize.Long() {
		t.Skip("a long form: TASQ_LONG=1 checks the types for Windows and macOS, TASQ_NIGHTLY=1 also for FreeBSD")
	}
	systems := []string{"windows", "darwin"}
	if testsize.Nightly() {
		systems = append(systems, "freebsd") // its files are nearly those of macOS
	}
	for _, system := range systems {
		t.Run(system, func(t *testing.T) {
			c := newTypeChecker()
			for _, p := range listPackages(t, system) {
				c.check(p)
			}
			require.Empty(t, c.errors)
			c.checkSource("package p\nimport \"syscall\"\nvar _ = syscall.Kill")
			require.Equal(t, system == "windows", len(c.errors) > 0, "Windows alone has no syscall.Kill: %v", c.errors)
		})
	}
}

// A listedPackage is a package as go list describes it.
type listedPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string // what the path of an import stands for, where that differs
	Module     *struct{ Main bool }
}

// listPackages returns the packages of the module and all that they import on a system, each after its own imports.
func listPackages(t *testing.T, system string) (all []listedPackage) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	list.Dir = root(t)
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// A typeChecker checks the types of packages in the order of their imports.
type typeChecker struct {
	files    *token.FileSet
	packages map[string]*types.Package // by import path
	errors   []error                   // in packages of the module
}

func newTypeChecker() *typeChecker {
	return &typeChecker{files: token.NewFileSet(), packages: map[string]*types.Package{"unsafe": types.Unsafe}}
}

// check checks one package. The functions of other modules are checked without their bodies.
func (c *typeChecker) check(p listedPackage) {
	if p.ImportPath == "unsafe" {
		return
	}
	own := p.Module != nil && p.Module.Main
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		c.add(own, err)
		files = append(files, f)
	}
	config := types.Config{
		Importer:         imports{c.packages, p.ImportMap},
		IgnoreFuncBodies: !own,
		Sizes:            types.SizesFor("gc", runtime.GOARCH),
		Error:            func(err error) { c.add(own, err) },
	}
	c.packages[p.ImportPath], _ = config.Check(p.ImportPath, c.files, files, nil)
}

// checkSource checks a file that belongs to the module.
func (c *typeChecker) checkSource(source string) {
	f, err := parser.ParseFile(c.files, "p.go", source, parser.SkipObjectResolution)
	c.add(true, err)
	config := types.Config{Importer: imports{of: c.packages}, Error: func(err error) { c.add(true, err) }}
	_, _ = config.Check("p", c.files, []*ast.File{f}, nil)
}

func (c *typeChecker) add(own bool, err error) {
	if own && err != nil {
		c.errors = append(c.errors, err)
	}
}

// imports are the packages that one package can import.
type imports struct {
	of      map[string]*types.Package
	renamed map[string]string
}

// Import implements [types.Importer].
func (i imports) Import(path string) (*types.Package, error) {
	if to := i.renamed[path]; to != "" {
		path = to
	}
	if p := i.of[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not listed before the package that imports it", path)
}

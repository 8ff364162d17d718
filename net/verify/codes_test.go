package verify_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// The lists of codes hold every constant of the type, sorted.
func TestEveryCodeIsListed(t *testing.T) {
	lists := [][]net.Code{net.ProblemCodes(), verify.FindingCodes(), verify.WarningCodes(), verify.HoldCodes()}
	for _, list := range lists {
		require.True(t, slices.IsSorted(list), list)
		require.Equal(t, slices.Compact(slices.Clone(list)), list)
	}
	all := slices.Concat(lists...)
	slices.Sort(all)
	declared := declaredCodes(t)
	slices.Sort(declared)
	require.Equal(t, declared, slices.Compact(all))
}

// declaredCodes reads the constants of type net.Code out of the files of this package and of package net.
func declaredCodes(t *testing.T) []net.Code {
	var codes []net.Code
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	problems, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	paths = append(paths, problems...)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if isCode(v.Type) {
				for _, value := range v.Values {
					text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
					require.NoError(t, err)
					codes = append(codes, net.Code(text))
				}
			}
			return true
		})
	}
	return codes
}

// isCode reports whether a type is written Code, or net.Code.
func isCode(typ ast.Expr) bool {
	if sel, ok := typ.(*ast.SelectorExpr); ok {
		typ = sel.Sel
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.Name == "Code"
}

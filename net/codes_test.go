package net_test

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
)

// The lists of codes hold every constant of the type, sorted.
func TestEveryCodeIsListed(t *testing.T) {
	lists := [][]net.Code{net.ProblemCodes(), net.FindingCodes(), net.WarningCodes()}
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

// declaredCodes reads the constants of type Code out of the package's own files.
func declaredCodes(t *testing.T) []net.Code {
	var codes []net.Code
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
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
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Code" {
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

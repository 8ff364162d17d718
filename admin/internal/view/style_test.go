package view

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources are the files that may write what the style sheet is about.
func sources(t *testing.T, suffix string, folders ...string) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range folders {
		tree := os.DirFS(folder)
		require.NoError(t, fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, suffix) {
				return err
			}
			text, err := fs.ReadFile(tree, path)
			b.Write(text)
			return err
		}))
	}
	return b.String()
}

// Each class and id that the style sheet names is written by a template, by the script or by Go, and each of its variables is used.
func TestEachRuleOfTheStyleSheetIsUsed(t *testing.T) {
	words := make(map[string]bool)
	html, code := sources(t, ".html", "."), sources(t, ".go", ".", "../../../net/svg", "../../../engine/why", "../../../store/state")
	for _, attribute := range regexp.MustCompile(`(?:class|id)=\\?"([^"\\]*)`).FindAllStringSubmatch(html+code, -1) {
		for _, word := range regexp.MustCompile(`[\w-]+`).FindAllString(attribute[1], -1) {
			words[word] = true
		}
	}
	for _, quoted := range regexp.MustCompile(`"([\w-]+)(?:%d)?"`).FindAllStringSubmatch(code+sources(t, ".js", "."), -1) {
		words[quoted[1]] = true
	}
	data, err := assetFiles.ReadFile("assets/style.css")
	require.NoError(t, err)
	style := string(data)
	for _, m := range regexp.MustCompile(`[.#]([a-zA-Z][\w-]*)`).FindAllStringSubmatch(regexp.MustCompile(`\{[^{}]*\}`).ReplaceAllString(style, " "), -1) {
		state := strings.TrimPrefix(m[1], "s-") // the class of a state is made of its word
		numbered := strings.TrimRight(m[1], "0123456789")
		require.True(t, words[m[1]] || words[state] || words[numbered], "nothing has the class or id %s: remove its rule", m[1])
	}
	for _, m := range regexp.MustCompile(`--([a-z0-9]+):`).FindAllStringSubmatch(style, -1) {
		require.Contains(t, style+code, "var(--"+m[1], "nothing uses the variable --%s", m[1])
	}
}

package check_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/net/verify"
)

func compare(t *testing.T, list string, files ...*check.File) (string, bool) {
	t.Helper()
	v, err := check.ReadVerdicts(list)
	require.NoError(t, err)
	for _, f := range files {
		v.Add(f)
	}
	var b strings.Builder
	agree, err := v.Write(&b)
	require.NoError(t, err)
	return strings.ReplaceAll(b.String(), filepath.Dir(list)+string(filepath.Separator), ""), agree
}

func TestVerdictsAreCompared(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"list.csv": "file,sound\na.net,1\nsub/b.net,0\nc.net,1\nd.net,0\n\"e,f.net\",1\n"})
	_, stuck := example(t, verify.NoOptionToComplete)
	list := filepath.Join(dir, "list.csv")
	got, agree := compare(t, list, read("x/a.net", sound), read("x.tar/sub/b.net", stuck), read("other/b.net", sound),
		read("x/c.net", stuck), read("d.net", "wrkflow"), read("more.net", sound))
	require.False(t, agree)
	require.Equal(t, `list.csv:4: x/c.net is sound there, and unsound here
list.csv:5: d.net is unsound there, and unreadable here
list.csv:6: e,f.net is sound there, and was not checked
2 of 5 verdicts agree: 1 sound, 1 unsound; 1 not checked; 2 differ
`, got)

	got, agree = compare(t, list, read("a.net", sound), read("sub/b.net", stuck), read("c.net", sound), read("d.net", stuck),
		read("e,f.net", sound))
	require.True(t, agree)
	require.Equal(t, "5 of 5 verdicts agree: 3 sound, 2 unsound\n", got)

	pack(t, filepath.Join(dir, "all.tar.gz"), map[string]string{"m/a.net": sound, "m/verdicts.csv": "file,sound\na.net,1\n"})
	got, agree = compare(t, filepath.Join(dir, "all.tar.gz"), read("m/a.net", sound))
	require.True(t, agree, got)
}

func TestListsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	pack(t, filepath.Join(dir, "none.tar.gz"), map[string]string{"a.net": sound})
	write(t, dir, map[string]string{
		"empty.csv": "", "head.csv": "name,verdict\na,1\n", "word.csv": "file,sound\na.net,yes\n", "three.csv": "file,sound\na,1,2\n",
		"text.tar.gz": "text",
	})
	for name, want := range map[string]string{
		"empty.csv": `begins with the line "file,sound"`, "head.csv": `begins with the line "file,sound"`,
		"word.csv":    `word.csv: line 2: the verdict on a.net is "yes"; expected 1 for sound or 0 for unsound`,
		"three.csv":   `record on line 2: wrong number of fields`,
		"none.tar.gz": `there is no .csv in the archive`, "text.tar.gz": `text.tar.gz: unexpected EOF`, "missing.csv": `no such file`,
	} {
		_, err := check.ReadVerdicts(filepath.Join(dir, name))
		require.ErrorContains(t, err, want, name)
	}
}

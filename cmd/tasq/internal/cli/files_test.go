//go:build unix

package cli_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
)

const (
	notation     = "workflow w\n  start s\n  end e\n  task t\n  flow s -> t\n  flow t -> e\n"
	scenarioText = "define\n" + notation + "----\nok\n\nstart w\n----\nok\n"
)

// strange is a folder with a scenario, a net, and all that is neither and bears such a name.
func strange(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.txt": scenarioText, "mark.txt": "\ufeff" + scenarioText, "crlf.txt": crlf(scenarioText), "good.net": notation,
		"crlf.net": crlf(notation), "licence.txt": "As is.\n", "notes.txt": "Notes\n----\nall well\n----\n", "empty.txt": "",
		"cr.txt": strings.ReplaceAll(scenarioText, "\n", "\r"), "wide.txt": "\xff\xfed\x00e\x00\n\x00", "zero.txt": scenarioText + "\x00",
		"garbage.txt": "\x7fELF\x02\x01\xff\x00\x80",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, name := range []string{"pipe.txt", "pipe.net", "pipe.tar"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	t.Chdir(dir) // the name of a socket is short
	l, err := net.Listen("unix", "socket.txt")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	require.NoError(t, os.Symlink("loop.txt", "loop.txt"))
	require.NoError(t, os.Symlink("good.txt", "link.txt"))
	require.NoError(t, os.Mkdir("deep", 0o700))
	require.NoError(t, os.Symlink("..", "deep/up"))
	huge, err := os.Create("huge.txt")
	require.NoError(t, err)
	require.NoError(t, huge.Truncate(model.MaxBytes+1))
	require.NoError(t, huge.Close())
	return dir
}

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// bounded is a context that ends a command which waits for a writer.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestScriptOfFolderSkipsOtherFiles(t *testing.T) {
	strange(t)
	code, out, errs := call(bounded(t), "script", ".")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Equal(t, "ok: 4 files, 8 commands, 12 files skipped\n", out)
	for _, want := range []string{
		"skipped: cannot read pipe.txt: it is a named pipe;", "skipped: cannot read socket.txt: it is a socket;",
		"skipped: cannot read loop.txt: too many levels of symbolic links",
		"skipped: cannot read deep/up: it is a symbolic link to a folder", "skipped: empty.txt has no commands",
		"skipped: cannot read huge.txt: the file is longer than the limit of ",
		`skipped: licence.txt:1: "As is." has no "----" line`, "skipped: notes.txt:", "skipped: zero.txt:14: this is no text",
		"skipped: garbage.txt:1: this is no text", "skipped: wide.txt:1: the text is in UTF-16; save it in UTF-8",
		"skipped: cr.txt:1: the lines end in a carriage return alone",
	} {
		require.Contains(t, errs, want)
	}
}

func TestCheckOfFolderSkipsOtherFiles(t *testing.T) {
	strange(t)
	code, out, errs := call(bounded(t), "check", ".")
	require.Equal(t, cli.ExitOK, code, out+errs)
	require.Contains(t, out, "6 files, 6 nets: 6 sound")
	for _, want := range []string{
		"pipe.txt is skipped: it is a named pipe;", "pipe.net is skipped: it is a named pipe;",
		"pipe.tar is skipped: it is a named pipe;", "socket.txt is skipped: it is a socket;", "loop.txt is skipped: too many levels",
		"notes.txt is skipped: ", "wide.txt is skipped: the text is in UTF-16; save it in UTF-8",
		"huge.txt is skipped: the file is longer than the limit of ", "cr.txt is skipped: the lines end in a carriage return alone",
	} {
		require.Contains(t, errs, want)
	}
}

// What is named is an error, and says what is wrong; none waits.
func TestAFileThatIsNamedIsAnError(t *testing.T) {
	strange(t)
	for name, want := range map[string]string{
		"pipe.txt": "it is a named pipe; name a regular file, or /dev/stdin", "socket.txt": "it is a socket",
		"loop.txt": "too many levels of symbolic links", "wide.txt": "the text is in UTF-16; save it in UTF-8",
		"cr.txt": "the lines end in a carriage return alone", "huge.txt": "longer than the limit of 67108864 bytes",
		"/dev/zero": "it is a device",
	} {
		for _, command := range [][]string{{"script"}, {"check"}, {"draw"}, {"convert", "-f", "net"}} {
			code, out, errs := call(bounded(t), append(command, name)...)
			require.Equal(t, cli.ExitUsage, code, "%s %s", command, name)
			require.Contains(t, out+errs, want, "%s %s", command, name)
		}
	}
}

func TestALinkToAFolderIsTheFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "folder", "a.txt"), []byte(scenarioText), 0o600))
	require.NoError(t, os.Symlink("folder", filepath.Join(dir, "link")))
	for _, command := range []string{"script", "check"} {
		code, out, errs := call(bounded(t), command, filepath.Join(dir, "link"))
		require.Equal(t, cli.ExitOK, code, errs)
		require.Contains(t, out, "1 file, ")
	}
}

func TestAScenarioOfStandardInput(t *testing.T) {
	var out, errs strings.Builder
	code := cli.Main(t.Context(), []string{"script", "-"},
		cli.Streams{In: strings.NewReader(scenarioText), Out: &out, Err: &errs}, cli.Registry{})
	require.Equal(t, cli.ExitOK, code, errs.String())
	require.Equal(t, "ok: 1 file, 2 commands\n", out.String())
	code, _, text := call(t.Context(), "script", "--update", "-")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, text, "name a file")
}

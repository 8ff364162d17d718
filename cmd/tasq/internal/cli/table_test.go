package cli

import (
	"encoding/csv"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/printable"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// long has a word that no other text has at its end.
var long = strings.Repeat("so long ", 20) + "END"

// CSV has texts as they are, for other programs; the lines of a table stay short, whatever people have written.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "long.db")
	b := builder.New[any]("desk")
	b.Path(b.Start(), builder.Task(b, "check", builder.Work[any, any]{Policy: workitem.Incident(workitem.Policy{})}), b.End())
	w := b.MustBuild()
	e, err := engine.Open(t.Context(), sqlite.File(db), w)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	id, err := w.Start(t.Context(), e, nil, workflow.By(long))
	require.NoError(t, err)
	item := strings.Split(ran(t, db, "items", "-o", "csv"), "\n")[1][:36]
	for _, c := range []workflow.Command{
		workflow.Send(id, "said", "value "+long, workflow.By(long)),
		workflow.PauseQueue("a queue of 20 runes!", workflow.By(long), workflow.Because("reason "+long)),
	} {
		_, err = e.Do(t.Context(), c)
		require.NoError(t, err)
	}
	ran(t, db, "item", "start", item)
	ran(t, db, "item", "fail", item, "--data", `{"code":"busy","message":"message `+long+`"}`)
	ran(t, db, "case", "suspend", id.String(), "--by", long, "--reason", "reason "+long)
	for list, want := range map[string]string{
		"items": "busy: message " + long, "incidents": "busy: message " + long, "events": `"value ` + long + `"`, "queues": "reason " + long, "audit": "reason " + long,
	} {
		rows, err := csv.NewReader(strings.NewReader(ran(t, db, list, "-o", "csv"))).ReadAll()
		require.NoError(t, err, list)
		require.Contains(t, strings.Join(rows[1], ";"), want, list)
		if list == "queues" {
			require.Contains(t, ran(t, db, list), "a queue of 20 runes!  ", "other commands take the whole name")
		}
		for line := range strings.Lines(ran(t, db, list)) {
			require.Less(t, len([]rune(line)), 180, list)
		}
	}
}

// A command that prints a text does not print it when a table for programs is asked for.
func TestTextIsNoCSV(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "none.db")
	for _, args := range [][]string{{"why", "C-1"}, {"show", "C-1"}, {"history", "C-1"}, {"way", "C-1"}, {"doctor", db}} {
		code, out, errs := tasq(t, db, append(args, "-o", "csv")...)
		require.Equal(t, ExitUsage, code, args)
		require.Empty(t, out)
		require.Contains(t, errs, "tasq "+args[0]+" prints a text without columns, so -o csv does not apply; -o json is for programs")
	}
}

// A watched list that is longer than the terminal ends with how much of it is not shown.
func TestTheLinesThatFitOnATerminal(t *testing.T) {
	t.Parallel()
	text := "head\n1\n2\n3\n"
	require.Equal(t, text, firstLines(text, 5))
	require.Equal(t, "head\n1\n… and 2 more lines\n", firstLines(text, 4))
	require.Equal(t, "head\n… and 3 more lines\n", firstLines(text, 1))
	require.Empty(t, firstLines("", 1))
}

// The lines of a watched list are cut to the columns of the terminal, wide characters and colors included, and its tables use a wide one.
func TestAWatchedListFitsTheColumns(t *testing.T) {
	t.Parallel()
	require.Equal(t, "abc…\nab\n", cutLines("abcde\nab\n", 4))
	require.Equal(t, "口…\n口座\n", cutLines("口座に\n口座\n", 4), "a wide character is not cut in half")
	require.Equal(t, "a \x1b[31mfai…\x1b[0m", cutLines("a \x1b[31mfailed\x1b[0m  1", 6))
	require.Equal(t, "a \x1b[31mfailed\x1b[0m\n", cutLines("a \x1b[31mfailed\x1b[0m\n", 8))
	require.Equal(t, "abcde", cutLines("abcde", 0), "the terminal does not tell")

	for drawn, most := range map[int]int{0: tableWidth, 80: tableWidth, 140: 140} {
		var out strings.Builder
		a := &app{Streams: Streams{Out: &out}, output: "table", drawn: drawn}
		table := a.table("CASE", "FAILURE")
		table.add("C-1", strings.Repeat("口座", 60))
		require.NoError(t, table.flush())
		last := strings.Split(strings.TrimSpace(out.String()), "\n")[1]
		require.LessOrEqual(t, printable.Width(last), most)
		require.Greater(t, printable.Width(last), most-3)
	}
}

package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
)

// early is the system clock, some minutes earlier.
type early struct{ retry.Clock }

func (c early) Now() time.Time { return c.Clock.Now().Add(-5 * time.Minute) }

// The command line has no definitions. It asks the program that owns the file, and reads what the engines of a fleet have recorded.
func TestIncidentsNameDefinitionsThatNoProgramHas(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		workflowOf := func(version, queue string) *builder.Workflow[any] {
			b := builder.New[any]("desk", builder.Version(version))
			b.Path(b.Start(), builder.Task(b, "check", builder.Work[any, any]{Queue: queue}), b.End())
			w, err := b.Build()
			require.NoError(t, err)
			return w
		}
		one, two := workflowOf("1", "old"), workflowOf("2", "new")
		open := func(w engine.Workflow) *engine.Engine {
			e, err := engine.Config{Workers: -1, Clock: early{retry.SystemClock}}.Open(t.Context(), db, w)
			require.NoError(t, err)
			if strings.HasPrefix(at, "postgres") { // engines have joined by the clock of the server
				c, err := pgx.Connect(t.Context(), at)
				require.NoError(t, err)
				_, err = c.Exec(t.Context(), "UPDATE tasq.processes SET joined = joined - interval '5 minutes'")
				require.NoError(t, err)
				require.NoError(t, c.Close(t.Context()))
			}
			return e
		}
		incidents := func() string {
			code, out, errs := tasq(t, at, "incidents", "-o", "json")
			require.Zero(t, code, errs)
			return out
		}
		e := open(one)
		id, err := one.Start(t.Context(), e, nil)
		require.NoError(t, err)
		require.Empty(t, incidents())
		require.NoError(t, e.Close())
		const unknown = "no program that has the database open has answered, so it is not known which definitions are missing"
		code, out, errs := tasq(t, at, "incidents", "-o", "json")
		require.Zero(t, code)
		require.Empty(t, out)
		require.Equal(t, unknown+"\n", errs)
		code, out, errs = tasq(t, at, "incidents", "-o", "csv")
		require.Zero(t, code)
		require.Equal(t, "INCIDENT,KIND,CASE,OF,ITEM,SINCE,FAILURE\n", out)
		require.Contains(t, errs, unknown)
		for _, filter := range [][]string{{"--kind", "attempts"}, {"--code", "busy"}, {"--task", "check"}} {
			code, out, errs = tasq(t, at, append([]string{"incidents", "-o", "json"}, filter...)...)
			require.Zero(t, code)
			require.Empty(t, out+errs, "definitions are not selected")
		}
		if strings.HasPrefix(at, "postgres") {
			code, out, errs = tasq(t, at, "processes")
			require.Zero(t, code, errs)
			require.Empty(t, out)
			require.Equal(t, "no engine has the database open\n", errs)
		}

		e = open(two)
		if strings.HasPrefix(at, "postgres") {
			code, out, errs = tasq(t, at, "processes")
			require.Zero(t, code, errs)
			require.Regexp(t, `LATE +SEEN +CLOCK +DEFINITIONS\n.* 1: desk 2\n$`, out)
			code, out, errs = tasq(t, at, "processes", "-o", "json")
			require.Zero(t, code, errs)
			require.Contains(t, out, `"lag":"0s","definitions":1,"knows":["desk 2"]`)
		}
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(incidents()), &got))
		require.Equal(t, "definition", got["kind"])
		require.Equal(t, "desk", got["workflow"])
		require.Equal(t, "1", got["version"])
		require.Equal(t, one.Untyped().Fingerprint, got["fingerprint"])
		require.EqualValues(t, 1, got["cases"])
		require.NotContains(t, got, "case")
		require.Contains(t, got["failure"], "message")
		require.Equal(t, "no open engine has workflow desk version 1, which 1 live case needs; open a program with it", got["failure"].(map[string]any)["message"])
		code, out, errs = tasq(t, at, "incidents")
		require.Zero(t, code, errs)
		require.Contains(t, out, "desk 1")
		require.Contains(t, out, "not-loaded: no open en")
		code, out, errs = tasq(t, at, "why", id.String())
		require.Zero(t, code, errs)
		require.Contains(t, out, "no open engine has workflow desk version 1")
		code, out, errs = tasq(t, at, "doctor", "--live")
		require.Equal(t, ExitNo, code, errs)
		require.Contains(t, out, "(not-loaded)")
		code, _, errs = tasq(t, at, "incident", "retry", "--kind", "definition", "--all")
		require.Equal(t, ExitUsage, code)
		require.Contains(t, errs, "ends when a program with the definition is opened")
		for _, id := range []string{got["id"].(string), "00000000-0"} {
			code, _, errs = tasq(t, at, "incident", "retry", id)
			require.Equal(t, ExitRefused, code)
			require.Contains(t, errs, "incident "+id+" is about a definition: it ends when a program with that is opened")
		}
		require.NoError(t, e.Close())

		e = open(one)
		require.Empty(t, incidents())
		code, out, errs = tasq(t, at, "why", id.String())
		require.Zero(t, code, errs)
		require.NotContains(t, out, "no open engine")
		require.NoError(t, e.Close())
	})
}

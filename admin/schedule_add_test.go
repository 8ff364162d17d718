package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/store"
)

// A schedule is added and changed through the API, with all that the command has flags for.
func TestAScheduleIsAddedThroughTheAPI(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	const body = `{"name":"hourly","workflow":"mail","input":{"customer":"ada"},"every":"1h","start":"2100-01-01T00:00:00Z","end":"2100-01-01T02:30:00Z",
		"jitter":"1s","overlap":"queue","catch_up":"all","catch_up_most":3,"grace":"2m","reason":"ada asked"}`
	w := commandTo(h, "/api/v1/schedules", strings.Replace(body, "{", `{"dryRun":true,`, 1))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `"workflow":"`+schedules.Name+`","changes":["case of `)
	_, err := schedules.Find(t.Context(), o, "hourly")
	require.ErrorIs(t, err, store.ErrNotFound, "nothing was done")
	w = commandTo(h, "/api/v1/schedules", body, "Idempotency-Key", "k")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var d schedules.Description
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
	require.Len(t, d.Next, 3, "two whole hours after the start")
	require.Equal(t, []string{"every 1h", "mail", "queue", "all", "eve"}, []string{d.Spec, d.Starts, d.Overlap, d.CatchUp, d.Changes[0].By})
	require.Equal(t, "ada asked", d.Changes[0].Reason)
	added, err := schedules.Find(t.Context(), o, "hourly")
	require.NoError(t, err)
	require.Equal(t, []any{3, 2 * time.Minute, time.Second}, []any{added.Schedule.CatchUpMost, added.Schedule.Grace, added.Schedule.Jitter})
	require.Equal(t, http.StatusOK, commandTo(h, "/api/v1/schedules", body, "Idempotency-Key", "k").Code)
	again, err := schedules.Find(t.Context(), o, "hourly")
	require.NoError(t, err)
	require.Equal(t, added.Case, again.Case, "it is the same command")

	w = commandTo(h, "/api/v1/schedules", `{"name":"hourly","workflow":"mail","input":{"customer":"ada"},"cron":"0 8 * * *","zone":"Europe/Berlin"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	d = schedules.Description{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
	require.Equal(t, []string{"0 8 * * *", "Europe/Berlin", "skip", "none"}, []string{d.Spec, d.Zone, d.Overlap, d.CatchUp})

	for bad, want := range map[string]string{
		`{"name":"x","workflow":"mail","every":"soon"}`:               `every \"soon\": write a duration such as 90s or 5m`,
		`{"name":"x","workflow":"mail","cron":"61 * * * *"}`:          "61",
		`{"name":"x","workflow":"mail"}`:                              "set either Cron or Every",
		`{"name":"x","workflow":"mail","every":"1h","overlap":"no"}`:  "no",
		`{"name":"x","every":"1h"}`:                                   `needs \"workflow\"`,
		`{"workflow":"mail","every":"1h"}`:                            "it has no name",
		`{"name":"x","workflow":"mail","every":"1h","catch-up":"no"}`: "catch-up",
		`{"name":"x","workflow":"mail","every":"1h"}{}`:               "unexpected data",
	} {
		w := commandTo(h, "/api/v1/schedules", bad)
		require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", bad, w.Body)
		require.Contains(t, w.Body.String(), want, bad)
	}
}

// Who adds a schedule needs the right to command it, and the right to start the workflow.
func TestAddingAScheduleNeedsBothRights(t *testing.T) {
	o := newPlant(t)
	const body = `{"name":"hourly","workflow":"mail","input":{"customer":"ada"},"every":"1h"}`
	for _, rights := range []struct{ schedule, start bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		h := o.handler(admin.Config{Access: func(*http.Request) (admin.User, error) {
			return admin.User{Name: "eve", May: func(kind, target string) bool {
				return kind == schedules.Name && target == "hourly" && rights.schedule || kind == "start" && target == "mail" && rights.start
			}}, nil
		}})
		w := commandTo(h, "/api/v1/schedules", body)
		_, err := schedules.Find(t.Context(), o, "hourly")
		if rights.schedule && rights.start {
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			require.NoError(t, err)
		} else {
			require.Equal(t, http.StatusForbidden, w.Code, "%+v: %s", rights, w.Body)
			require.Error(t, err)
		}
	}
}

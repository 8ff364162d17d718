package admin_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
)

// The API counts what ended by task and hour, as the command does, and refuses a parameter that it does not know.
func TestTheAPIHasRates(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "x")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	rates := func(path string) (rows []object) {
		w := get(h, path)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var got struct {
			Rows []object
			All  bool
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.True(t, got.All)
		return got.Rows
	}
	by := rates("/api/v1/stats")
	require.NotEmpty(t, by)
	require.NotContains(t, by[0], "hour")
	hourly := rates("/api/v1/stats?hourly&workflow=" + by[0]["workflow"].(string))
	require.NotEmpty(t, hourly)
	require.Contains(t, hourly[0], "hour")
	require.Equal(t, by[0]["done"], hourly[0]["done"])
	require.Empty(t, rates("/api/v1/stats?task=none"))
	require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/stats?taks=none").Code)
}

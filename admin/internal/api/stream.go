package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// entryRow is the JSON form of an entry of the journal.
type entryRow struct {
	Seq     int64           `json:"seq"`
	Root    workitem.CaseID `json:"root"`
	At      time.Time       `json:"at"`
	Command string          `json:"command"`
	By      string          `json:"by,omitempty"`
	Changes int             `json:"changes"` // their number; the history of the case has the changes
}

// stream sends the entries of the journal as server-sent events. The id of an event is the position, so a client that
// reconnects continues where it was.
func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	root, after := q.Root(), q.Number("after")
	if !check(w, q) {
		return
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			Refuse(w, http.StatusBadRequest, "bad-parameter", "the header Last-Event-ID is a position of the journal")
			return
		}
		after = n
	}
	if !root.IsZero() {
		if _, err := store.TreeOf(r.Context(), a.Backend, root); err != nil {
			Problem(w, err)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush() // if flushing is not supported, the client waits longer
	for e, err := range source.Follow(r.Context(), a.Backend, a.Clock, root, after) {
		if err != nil {
			return // the client reconnects, and then gets the error
		}
		row, err := json.Marshal(entryRow{Seq: e.Seq, Root: e.Root, At: e.At, Command: e.Command, By: e.By, Changes: len(e.Changes)})
		if err == nil {
			_, err = fmt.Fprintf(w, "id: %d\nevent: entry\ndata: %s\n\n", e.Seq, row)
		}
		if err != nil || out.Flush() != nil {
			return // the client has disconnected
		}
	}
}

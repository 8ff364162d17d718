package api

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/tasq-dev/tasq/internal/record"
)

// form is a format for all rows of a list as a stream.
type form struct {
	kind, name string                     // the content type, and the file name
	rows       func(w io.Writer) rowWrite // begins the content
}

// rowWrite writes a row; nil ends the content.
type rowWrite func(row any) error

// formOf returns the requested format; nil for a page in JSON.
func formOf[O any](r *http.Request) *form {
	accept := r.Header.Get("Accept")
	switch {
	case r.URL.Query().Get("format") == "csv" || strings.Contains(accept, "text/csv"):
		return &form{"text/csv; charset=utf-8", "rows.csv", func(w io.Writer) rowWrite { return record.CSV(w, reflect.TypeFor[O]()) }}
	case strings.Contains(accept, "application/x-ndjson"):
		return &form{"application/x-ndjson", "rows.ndjson", jsonRows}
	}
	return nil
}

// begin writes the header and the beginning of the response.
func (f *form) begin(w http.ResponseWriter) rowWrite {
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
	return f.rows(w)
}

func jsonRows(w io.Writer) rowWrite {
	encoder := json.NewEncoder(w)
	return func(row any) error {
		if row == nil {
			return nil
		}
		return encoder.Encode(row)
	}
}

package api

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
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
		return &form{"text/csv; charset=utf-8", "rows.csv", func(w io.Writer) rowWrite { return csvRows(w, reflect.TypeFor[O]()) }}
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

// csvRows writes rows as CSV: a column for each field of the record. Texts are written as they are, other values as
// JSON.
func csvRows(w io.Writer, of reflect.Type) rowWrite {
	var names []string
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	out := csv.NewWriter(w)
	_ = out.Write(names) // Flush returns the error
	return func(row any) error {
		if row == nil {
			out.Flush()
			return out.Error()
		}
		data, err := json.Marshal(row)
		if err != nil {
			return err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return err
		}
		cells := make([]string, len(names))
		for i, name := range names {
			cells[i] = csvCell(fields[name])
		}
		return out.Write(cells)
	}
}

// csvCell formats a JSON value as a cell. A text that a spreadsheet would take for a formula gets an apostrophe, which
// makes it text.
func csvCell(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return ""
	case json.Unmarshal(raw, &text) != nil:
		return string(raw)
	case text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])):
		return "'" + text
	}
	return text
}

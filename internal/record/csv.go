package record

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strings"
)

// CSV writes rows of a type of this package as CSV: a column for each field. Texts are written as they are, other values as JSON. The
// function writes a row; nil ends the content.
func CSV(w io.Writer, of reflect.Type) func(row any) error {
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

package view

import (
	"bytes"
	"encoding/json"

	"github.com/tasq-dev/tasq/store"
)

// maxPrefill is how many bytes of an input a form has; it is sent twice.
const maxPrefill = 16 << 10

// prefill shows the input of an item in the form of a retry, so that it can be changed. What is masked or long is not shown: the form would send the mask,
// or a part of the input, as the new input.
//
// The form remembers the input beside the field, see [changed]: an item whose input was not changed is retried with the input that it has.
func (p *actPage) prefill(it, shown *store.ItemRow, fresh bool) {
	if len(it.Input) == 0 || len(it.Input) > maxPrefill || !bytes.Equal(it.Input, shown.Input) {
		return
	}
	p.Hidden = append(p.Hidden, Link{Text: "was", Href: string(it.Input)})
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Name != "payload" {
			continue
		}
		f.Label, f.Hint = "Input, as JSON", "The present input. Change it to retry with other input."
		if fresh {
			f.Value = indented(it.Input)
		}
	}
}

// indented is JSON in lines. Numbers and texts stay as they were written.
func indented(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return string(data)
	}
	return b.String()
}

// changed reports whether JSON differs from what it was by more than spaces.
func changed(text, was string) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, []byte(text)) != nil || json.Compact(&b, []byte(was)) != nil || !bytes.Equal(a.Bytes(), b.Bytes())
}

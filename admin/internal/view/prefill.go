package view

import (
	"bytes"
	"encoding/json"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// maxPrefill bounds the size in bytes of an input that a form contains, since it is sent twice.
const maxPrefill = 16 << 10

// prefill puts the input of an item into the form of a retry or a resume, so that it can be changed. It leaves out an input that is
// masked or too long: the form would send the mask, or a part of the input, as the new input.
//
// The form also contains the original input, see [changed]: an item whose input was not changed is retried with exactly
// the input that it has.
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

// prefillResume puts the input of the failed item that a resume replaces into the form of the resume.
func (h *forms) prefillResume(r *Request, c *state.Case, p *actPage) error {
	tree, err := r.R.Tree(r, c.Root)
	if err != nil {
		return err
	}
	failed := replacedBy(tree.Case(c.ID))
	if failed == nil {
		return nil
	}
	it, err := findItem(r, failed.ID)
	if err == nil {
		p.prefill(it, h.maskOf(r).Row(it), p.fresh)
	}
	return err
}

// replacedBy returns the failed item that a resume of a case replaces; nil if there is none, or if there are several, since
// an input is for one.
func replacedBy(c *state.Case) (failed *workitem.Item) {
	if c == nil || c.State != state.CaseFailed {
		return nil
	}
	for it := range c.Items.All() {
		t, known := c.Net.TaskByName(it.Task)
		if !known || it.State != workitem.Failed || !it.Successor.IsZero() || !c.Tasks[t].Resumable() {
			continue
		}
		if failed != nil {
			return nil
		}
		failed = it
	}
	return failed
}

// indented indents JSON. Numbers and strings keep their form.
func indented(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return string(data)
	}
	return b.String()
}

// changed reports whether two JSON texts differ by more than white space.
func changed(text, was string) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, []byte(text)) != nil || json.Compact(&b, []byte(was)) != nil || !bytes.Equal(a.Bytes(), b.Bytes())
}

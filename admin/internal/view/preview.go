package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// maxPreview bounds the number of changes in a preview.
const maxPreview = 20

// checkedForm answers with the form of a command and a preview of its changes.
func (h *forms) checkedForm(w http.ResponseWriter, r *http.Request, a *action, c workflow.Command) {
	if !a.checks {
		h.say(w, r, http.StatusBadRequest, "This command has no check", "")
		return
	}
	c.Key = "" // the dry run must not use up the key
	preview, err := h.preview(r, c)
	if err != nil {
		h.refusedForm(w, r, err)
		return
	}
	h.showForm(w, r, http.StatusOK, nil, preview...)
}

// maxShown bounds the wait for the preview of a form that nobody has asked for, if another process tries the command.
const maxShown = 2 * time.Second

// shownPreview is the preview that a form has when it is opened.
func (h *forms) shownPreview(r *http.Request, c workflow.Command) []string {
	ctx, cancel := context.WithTimeout(r.Context(), maxShown)
	defer cancel()
	lines, err := h.preview(r.WithContext(ctx), c)
	switch {
	case errors.Is(err, source.ErrNoOwner):
		return []string{"Not known: no program that has the database open has answered."}
	case errors.Is(err, store.ErrReadOnly):
		return nil
	case err != nil:
		return []string{"Nothing: it would be rejected. " + err.Error()}
	}
	return lines
}

// preview describes what the command would change, if the backend supports that.
func (h *forms) preview(r *http.Request, c workflow.Command) ([]string, error) {
	b, ok := h.Backend.(source.Previewer)
	if !ok {
		return nil, nil
	}
	var would engine.Preview
	err := h.bounded(r, func(ctx context.Context) (err error) {
		would, err = b.DryRun(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	hide := h.maskOf(r.Context())
	var lines []string
	for _, t := range would.Trees {
		st := describe.New(t.Tree, t.Tree.Root)
		st.AddTree(t.Before)
		for _, change := range t.Changes {
			line, _ := st.Describe(hide.Change(change), h.Backend.Now())
			lines = append(lines, printable.Line(line))
		}
	}
	for _, c := range would.Settings {
		line, err := record.SettingChange(c.Name, c.From, c.To)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "note") })
	if len(lines) > maxPreview {
		lines = append(lines[:maxPreview], fmt.Sprintf("and %d more changes", len(lines)-maxPreview))
	}
	return lines, nil
}

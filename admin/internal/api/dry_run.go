package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// commandBody is the body of a command.
type commandBody struct {
	workflow.Command
	DryRun bool `json:"dryRun,omitempty"` // answer what the command would do, and do nothing
}

// preview is the answer to a command with "dryRun": what it would do.
type preview struct {
	Result   workflow.Result `json:"result"` // its ids are not those that the command would assign
	Cases    []previewCase   `json:"cases"`
	Settings []string        `json:"settings"`         // of limits, queues and workflows
	Starts   []string        `json:"starts,omitempty"` // what a command on a schedule would start, in words
}

// previewCase is what would change in a root case and its child cases.
type previewCase struct {
	Case     workitem.CaseID `json:"case"`
	Workflow string          `json:"workflow"`
	Changes  []string        `json:"changes"` // in the words of the history
}

// withoutDryRun takes the field "dryRun" out of a body, which is no part of the command.
func withoutDryRun(body []byte) (command []byte, dry bool, err error) {
	if !bytes.Contains(body, []byte(`"dryRun"`)) {
		return body, false, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return body, false, nil // the command is refused with its own message
	}
	if err := domain.CheckForm[commandBody](body); err != nil {
		return nil, false, err
	}
	if raw, ok := fields["dryRun"]; ok {
		if err := json.Unmarshal(raw, &dry); err != nil {
			return nil, false, fmt.Errorf("%w: dryRun is true or false", workflow.ErrBadCommand)
		}
		delete(fields, "dryRun")
	}
	command, err = json.Marshal(fields)
	return command, dry, err
}

// dryRun answers what a command would do. Only the program that owns the database can say that.
func (a *API) dryRun(w http.ResponseWriter, r *http.Request, c workflow.Command, starts ...string) {
	b, ok := a.Backend.(source.Previewer)
	if !ok {
		Problem(w, fmt.Errorf("a command is tried by the program that owns the database: use its API: %w", store.ErrReadOnly))
		return
	}
	would, err := b.DryRun(r.Context(), c)
	if err != nil {
		Problem(w, err)
		return
	}
	m := a.mask(r)
	out := preview{Result: would.Result, Cases: []previewCase{}, Settings: []string{}, Starts: starts}
	for _, t := range would.Trees {
		s := describe.New(t.Tree, t.Tree.Root)
		s.AddTree(t.Before)
		of := previewCase{Case: t.Tree.Root, Workflow: t.Tree.Case(t.Tree.Root).Workflow}
		for _, change := range t.Changes {
			line, _ := s.Describe(m.Change(change), a.Backend.Now())
			of.Changes = append(of.Changes, printable.Line(line))
		}
		out.Cases = append(out.Cases, of)
	}
	for _, s := range would.Settings {
		line, err := record.SettingChange(s.Name, s.From, s.To)
		if err != nil {
			Problem(w, err)
			return
		}
		out.Settings = append(out.Settings, line)
	}
	answer(w, http.StatusOK, out)
}

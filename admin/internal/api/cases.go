package api

import (
	"fmt"
	"net/http"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/internal/startlines"
	"github.com/tasq-dev/tasq/workflow"
)

// MaxLines is the maximum size in bytes of a body that starts a case with each of its lines.
const MaxLines = 64 << 20

// startCases starts a case of a workflow for each line of the body, which is read while they start. What is refused is in the answer, and does not
// affect the others. With the parameter dryRun, the starts are tried.
func (a *API) startCases(w http.ResponseWriter, r *http.Request) {
	q, u := a.params(r), access.UserOf(r.Context())
	c := workflow.Command{Kind: workflow.KindStart, Workflow: q.Text("workflow"), Queue: q.Text("queue"), Labels: q.Labels(), Actor: u.Name,
		Key: r.Header.Get("Idempotency-Key")}
	mode := startlines.Start
	if q.Flag("dryRun") {
		mode = startlines.DryRun
	}
	if !check(w, q) {
		return
	}
	if c.Workflow == "" {
		Problem(w, &query.Error{Param: "workflow", Text: "names the workflow of the cases: give one"})
		return
	}
	if !allow(w, u, string(c.Kind), access.TargetOf(&c)) {
		return
	}
	s := startlines.Starter{Doer: a.Backend, Command: c, Mode: mode}
	result, err := s.Run(r.Context(), http.MaxBytesReader(w, r.Body, MaxLines))
	if err != nil {
		again := "without an Idempotency-Key the same request starts them again"
		switch {
		case mode == startlines.DryRun:
			Problem(w, fmt.Errorf("%w; %d lines would have started a case, and %d lines were refused, before", err, result.WouldStart, result.Refused))
			return
		case c.Key != "":
			again = "the same request starts the others, and none of them again"
		}
		Problem(w, fmt.Errorf("%w; %d cases were started, and %d lines refused, before; %s", err, result.Started, result.Refused, again))
		return
	}
	answer(w, http.StatusOK, result)
}

package view

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
)

// startFields are the fields of the form that starts a case; rarely used ones come last.
var startFields = []field{
	{Name: "payload", Label: "Input, as JSON", Hint: "Leave empty for no input.", Wide: true},
	{Name: "businessKey", Label: "Business key", Hint: "Identifies the case in searches. Leave empty for the key that the workflow computes."},
	{Name: "labels", Label: "Labels", Hint: "One per line, as in customer=ada, for searches.", Wide: true},
	reasonField,
	{Advanced: true, Name: "ifTaken", Label: "If a case holds the business key", Hint: "refuse the start; return the other case; replace the other case if it has not started; supersede it if it is active; queue behind it; debounce: start when no further start has come for a time.",
		Options: []string{"", string(workflow.Refuse), string(workflow.Return), string(workflow.Replace), string(workflow.Supersede), string(workflow.Queued), string(workflow.Debounced)}},
	{Advanced: true, Name: "per", Label: "Once per", Hint: "Allow one case with the business key in each calendar period.",
		Options: []string{"", string(workflow.Hour), string(workflow.Day), string(workflow.Week), string(workflow.Month)}},
	{Advanced: true, Name: "zone", Label: "Time zone of the calendar", Hint: "Such as Europe/Berlin; the default is UTC. Only with a calendar period."},
	{Advanced: true, Name: "quiet", Label: "Debounce", Hint: "90s or 5m: how long to wait for further starts with the key. Only with debounce."},
	{Advanced: true, Name: "longest", Label: "Debounce at most", Hint: "10m or 2h since the first start; the default is no limit."},
	{Advanced: true, Name: "throttle", Label: "Number of starts", Hint: "The most starts with the business key in the window. A further one is refused, or with return gets the last case."},
	{Advanced: true, Name: "window", Label: "Sliding window", Hint: "30s, 5m or 1h. Only with a number of starts."},
	{Advanced: true, Name: "after", Label: "Start after", Hint: "90s, 5m, 2h or 3d; the default is at once."},
	{Advanced: true, Name: "priority", Label: "Priority", Hint: "A number; higher goes first."},
	{Advanced: true, Name: "queue", Label: "Queue of its jobs", Hint: "The default is the queue of each task and function."},
}

// fieldError is an error about one field of a form.
type fieldError struct {
	name string
	err  error
}

// Error returns the message.
func (e *fieldError) Error() string { return e.err.Error() }

// Unwrap returns the error without the field.
func (e *fieldError) Unwrap() error { return e.err }

// fieldOf returns the name of the field that an error is about; "" for the command as a whole.
func fieldOf(err error) string {
	if named := (*fieldError)(nil); errors.As(err, &named) {
		return named.name
	}
	if invalid := (*domain.InvalidError)(nil); errors.As(err, &invalid) {
		return "payload"
	}
	if errors.Is(err, workflow.ErrKeyTaken) || errors.Is(err, workflow.ErrThrottled) {
		return "businessKey"
	}
	return ""
}

// fill sets the fields of the form to the values that were typed. An error is shown at its field, or above the form.
func (p *actPage) fill(a *action, form url.Values, problem error) {
	at := fieldOf(problem)
	for _, f := range a.fields {
		f.Value = form.Get(f.Name)
		if problem != nil && f.Name == at {
			f.Error = problem.Error()
			p.Error = "Nothing was changed: see the field " + f.Label + "."
		}
		if f.Advanced {
			p.Advanced, p.Unfolded = append(p.Advanced, f), p.Unfolded || f.Value != "" || f.Error != ""
			continue
		}
		p.Fields = append(p.Fields, f)
	}
	if problem != nil && p.Error == "" {
		p.Error = problem.Error()
	}
}

// readStart reads the fields that only a start has.
func readStart(c *workflow.Command, form url.Values) (err error) {
	c.BusinessKey, c.IfTaken = form.Get("businessKey"), workflow.Taken(form.Get("ifTaken"))
	c.Queue = strings.TrimSpace(form.Get("queue"))
	c.Per, c.Zone = workflow.Period(form.Get("per")), strings.TrimSpace(form.Get("zone"))
	bad := func(name, format string, args ...any) error {
		return &fieldError{name, fmt.Errorf(format+": %w", append(args, workflow.ErrBadCommand)...)}
	}
	for line := range strings.Lines(form.Get("labels")) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			return bad("labels", "%q has no name and value, as in customer=ada", line)
		}
		if err := workflow.CheckLabelName(name); err != nil {
			return &fieldError{"labels", err}
		}
		if _, twice := c.Labels[name]; twice {
			return bad("labels", "%s is given twice", name)
		}
		if c.Labels == nil {
			c.Labels = make(map[string]string)
		}
		c.Labels[name] = value
	}
	for _, f := range []struct {
		name string
		to   *time.Duration
	}{{"after", &c.After}, {"quiet", &c.Quiet}, {"longest", &c.Longest}, {"window", &c.Window}} {
		if text := strings.TrimSpace(form.Get(f.name)); text != "" {
			if *f.to, err = query.Age(text); err != nil {
				return bad(f.name, "%q is no time such as 90s, 5m, 2h or 3d", text)
			}
		}
	}
	for _, f := range []struct {
		name string
		to   *int
	}{{"priority", &c.Priority}, {"throttle", &c.Throttle}} {
		if text := strings.TrimSpace(form.Get(f.name)); text != "" {
			if *f.to, err = strconv.Atoi(text); err != nil {
				return bad(f.name, "%q is no number", text)
			}
		}
	}
	for _, f := range startFields {
		if value := form.Get(f.Name); len(f.Options) > 0 && !slices.Contains(f.Options, value) {
			return bad(f.Name, "there is no %q", value)
		}
	}
	if _, err := schedule.Location(c.Zone); err != nil {
		return &fieldError{"zone", fmt.Errorf("%w: %w", workflow.ErrBadCommand, err)}
	}
	return nil
}

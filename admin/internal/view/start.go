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

// startFields are those of the form that starts a case; those that are seldom wanted are the last.
var startFields = []field{
	{Name: "payload", Label: "Input, as JSON", Hint: "Empty gives none.", Wide: true},
	{Name: "businessKey", Label: "Business key", Hint: "The case is found by it. Empty leaves it to the workflow."},
	{Name: "labels", Label: "Labels", Hint: "One on each line, as in customer=ada. The case is found by them.", Wide: true},
	{Seldom: true, Name: "ifTaken", Label: "If a case holds the business key", Hint: "refuse; return that case; replace it if it has not begun; supersede it if it goes on; queue behind it; debounce: begin when no start has come for a time.",
		Options: []string{"", string(workflow.Refuse), string(workflow.Return), string(workflow.Replace), string(workflow.Supersede), string(workflow.Queued), string(workflow.Debounced)}},
	{Seldom: true, Name: "per", Label: "Once for each", Hint: "One case with the business key for each period of the calendar.",
		Options: []string{"", string(workflow.Hour), string(workflow.Day), string(workflow.Week), string(workflow.Month)}},
	{Seldom: true, Name: "zone", Label: "Time zone of the calendar", Hint: "Such as Europe/Berlin; empty is UTC. For a period alone."},
	{Seldom: true, Name: "quiet", Label: "Debounced by", Hint: "90s or 5m: so long no start with the key may come before it begins. For debounce alone."},
	{Seldom: true, Name: "longest", Label: "Debounced at most by", Hint: "10m or 2h, since the first start; empty is without a bound."},
	{Seldom: true, Name: "throttle", Label: "At most so many starts", Hint: "A number: one too many within the window is refused, or finds the last one with return."},
	{Seldom: true, Name: "window", Label: "In any window of", Hint: "30s, 5m or 1h, however it is laid. For a number of starts alone."},
	{Seldom: true, Name: "after", Label: "Begin after", Hint: "90s, 5m, 2h or 3d; empty is at once."},
	{Seldom: true, Name: "priority", Label: "Priority", Hint: "A number; higher goes first."},
	{Seldom: true, Name: "queue", Label: "Queue of its jobs", Hint: "Empty is that of each task and function."},
}

// fieldError is for a field of a form whose value cannot be understood.
type fieldError struct {
	name string
	err  error
}

// Error is what is wrong with the value.
func (e *fieldError) Error() string { return e.err.Error() }

// Unwrap returns the error without the field.
func (e *fieldError) Unwrap() error { return e.err }

// fieldOf is the name of the field that an error is about; "" if it is about the command as a whole.
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

// fill sets the fields of the form to what was typed. What is wrong is at the field that it is about, or above the form.
func (p *actPage) fill(a *action, form url.Values, problem error) {
	at := fieldOf(problem)
	for _, f := range a.fields {
		f.Value = form.Get(f.Name)
		if problem != nil && f.Name == at {
			f.Error = problem.Error()
			p.Error = "Not done: see the field " + f.Label + "."
		}
		if f.Seldom {
			p.Seldom, p.Unfolded = append(p.Seldom, f), p.Unfolded || f.Value != "" || f.Error != ""
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

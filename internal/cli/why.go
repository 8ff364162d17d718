package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

func (a *app) why() *cobra.Command {
	return &cobra.Command{
		Use: "why CASE [TASK]", Short: "say why a task of a case is not enabled, or what it waits for",
		Long: paragraph("Say what the tasks of a case wait for: which of their inputs are empty, and for an or-join, from " +
			"where a token could still come; of a task that is under way, which items are to be done, and what their steps " +
			"wait for. Without a TASK, all tasks are explained but those that only wait for somebody to do their items."),
		Args: between(1, "the id of a CASE", "the name of a TASK"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			id, err := parseID(workitem.ParseCaseID, "case", args[0])
			if err != nil {
				return err
			}
			return a.view(ctx, func(r store.Reader) error {
				c, err := findCase(ctx, r, id)
				if err != nil {
					return err
				}
				if len(args) == 2 {
					t, err := findTask(c, args[1])
					if err != nil {
						return err
					}
					return a.explain(ctx, r, c, t)
				}
				return a.explainAll(ctx, r, c)
			})
		}),
	}
}

// explainAll explains the tasks that are not under way.
func (a *app) explainAll(ctx context.Context, r store.Reader, c *store.Case) error {
	if c.State.Final() {
		a.remark("case %s is %s: nothing of it can be enabled any more", c.ID, c.State)
	}
	explained := 0
	waits, err := waitsOf(ctx, r, c.ID)
	if err != nil {
		return err
	}
	for t, task := range c.Tasks {
		if task.State.Active() && !waits.task[c.Net.TaskName(net.TaskID(t))] {
			continue
		}
		explained++
		if err := a.explain(ctx, r, c, net.TaskID(t)); err != nil {
			return err
		}
	}
	if explained == 0 {
		a.remark("every task of case %s is enabled or started", c.ID)
	}
	return nil
}

// whyRow is the JSON form of an explanation.
type whyRow struct {
	Case       workitem.CaseID `json:"case"`
	CaseState  string          `json:"case_state"`
	Task       string          `json:"task"`
	State      string          `json:"state"`
	Generation int             `json:"generation"`
	Join       string          `json:"join"`
	Marked     []string        `json:"marked,omitempty"` // inputs with a token
	Empty      []string        `json:"empty,omitempty"`  // inputs without one
	Waits      []waitRow       `json:"waits,omitempty"`  // how tokens can still come to an or-join
	Undecided  bool            `json:"undecided,omitempty"`
	Items      []whyItem       `json:"items,omitempty"` // what is still to be done of a task that is under way
	Text       string          `json:"text"`
}

type waitRow struct {
	Input string   `json:"input"`
	From  []string `json:"from"`
	Path  []string `json:"path"`
}

type whyItem struct {
	ID    workitem.ID `json:"id"`
	Label string      `json:"label"`
	State string      `json:"state"`
	Queue string      `json:"queue"`
	Waits []string    `json:"waits,omitempty"` // what the steps of its run wait for
}

// waits are what the steps of a case wait for.
type waits struct {
	item map[workitem.ID][]string
	task map[string]bool // tasks that have such items
}

func waitsOf(ctx context.Context, r store.Reader, id workitem.CaseID) (waits, error) {
	w := waits{item: make(map[workitem.ID][]string), task: make(map[string]bool)}
	steps, err := r.Steps(ctx, store.StepFilter{Case: id, States: []workitem.StepState{workitem.StepWaiting}})
	if err != nil || len(steps) == 0 {
		return w, err
	}
	at, told := now(), newStory(nil, id)
	for _, s := range steps {
		if s.Kind != workitem.StepToken && !s.Item.IsZero() {
			text := fmt.Sprintf("step %s waits for %s, since %s", s.Name, told.awaited(s), ago(at.Sub(s.Created)))
			if !s.Due.IsZero() {
				text += ", until " + iso(s.Due)
			}
			w.item[s.Item] = append(w.item[s.Item], text)
		}
	}
	open := []workitem.State{workitem.Initialized, workitem.Started}
	items, err := r.Items(ctx, store.ItemFilter{Case: id, States: open})
	for _, it := range items {
		if len(w.item[it.ID]) > 0 {
			w.task[it.Task] = true
		}
	}
	return w, err
}

func (a *app) explain(ctx context.Context, r store.Reader, c *store.Case, t net.TaskID) error {
	task, e := c.Tasks[t], c.Net.Explain(t, c.Marking, c.Busy())
	row := whyRow{
		Case: c.ID, CaseState: c.State.String(), Task: e.Task, State: task.State.String(), Generation: task.Generation,
		Join: e.Join.String(), Marked: e.Marked, Empty: e.Empty, Undecided: e.Undecided, Text: e.String(),
	}
	for _, w := range e.Waits {
		row.Waits = append(row.Waits, waitRow(w))
	}
	switch {
	case c.State.Final():
		row.Text = fmt.Sprintf("the case is %s", c.State)
	case task.State.Active():
		items, err := r.Items(ctx, store.ItemFilter{Case: c.ID, Task: e.Task,
			States: []workitem.State{workitem.Initialized, workitem.Started}})
		if err != nil {
			return err
		}
		waits, err := waitsOf(ctx, r, c.ID)
		if err != nil {
			return err
		}
		row.Text = underWay(&row, items, waits)
	}
	if a.output == "json" {
		return a.object(row)
	}
	_, err := fmt.Fprintf(a.Out, "%s (%s): %s\n", row.Task, row.State, row.Text)
	return err
}

// underWay says what a task that is enabled or started waits for: somebody to do its work.
func underWay(row *whyRow, items []*store.ItemRow, waits waits) string {
	var waiting []string
	for _, it := range items {
		row.Items = append(row.Items, whyItem{it.ID, it.Label(), it.State.String(), it.Queue, waits.item[it.ID]})
		queue := ""
		if it.Queue != "" {
			queue = ", queue " + it.Queue
		}
		waiting = append(waiting, fmt.Sprintf("%s (%s%s) %s", it.Label(), it.State, queue, it.ID))
		for _, w := range waits.item[it.ID] {
			waiting = append(waiting, "\t"+w)
		}
	}
	if len(waiting) == 0 {
		return "it is under way, without a work item that is still to be done"
	}
	return "it is under way; still to be done:\n\t" + strings.Join(waiting, "\n\t")
}

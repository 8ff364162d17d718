package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

func (a *app) limits() *cobra.Command {
	q, o := &asking{a: a}, owning{a: a}
	cmd := &cobra.Command{
		Use: "limits", Short: "list the limits of functions, with their usage",
		Long: paragraph("List the limits of the functions of a database: concurrency limits (slots), rate limits and circuit breakers. The running program reports what is in " +
			"use and how many jobs wait; without one, both are zero, except for slots that cases hold over several tasks: those cases are listed " +
			"in any case. NEXT FREE is \"no function here\" for a limit that is stored in the database, but that no " +
			"function of that program uses: tasq limit forget removes it. If several programs have the database open, WAITING is that of the one which " +
			"reports, and so is IN USE of limits that are not shared."),
		Example: "  tasq limits",
		Args:    exactly(),
	}
	q.patience(cmd)
	w := watch{a: a, keys: []string{"limit.name"}, poll: watchRefresh}
	w.flag(cmd)
	cmd.RunE = w.reporting(q, func(ctx context.Context, r store.Reader) error {
		q.command.Kind = workflow.KindLimits
		result, _, err := o.report(ctx, q)
		if err != nil || q.left() {
			return err
		}
		list, err := why.ReadLimits(ctx, r, result.Limits)
		if err != nil {
			return err
		}
		return a.showLimits(list)
	})
	return cmd
}

func (a *app) showLimits(list []workflow.LimitInfo) error {
	if a.output == "json" {
		return objects(a, list)
	}
	if len(list) == 0 {
		a.remark("no limits")
	}
	t := a.table("LIMIT", "WHAT", "N", "DEFINED", "IN USE", "WAITING", "NEXT FREE", "SET BY", "REASON")
	for _, l := range list {
		t.add(l.Limit.Name, l.Kind(), strconv.FormatInt(l.Limit.N, 10), strconv.FormatInt(l.Defined, 10),
			strconv.FormatInt(l.Used, 10), strconv.Itoa(l.Waiting), l.NextFree(), l.By, printable.Line(l.Reason))
		for _, k := range l.Set {
			state := ""
			if k.N == 0 {
				state = "paused"
			}
			t.add(l.Limit.Name, "key "+k.Key, strconv.FormatInt(k.N, 10), strconv.FormatInt(l.Limit.N, 10), "", "", state, k.By, printable.Line(k.Reason))
		}
		for _, h := range l.Holders {
			t.add(l.Limit.Name, "held by case "+h.Case.String()+keyOfHolder(h), "", "", strconv.FormatInt(h.N, 10), "", "since "+h.Task, "", "")
		}
		if l.HeldOutside > 0 || l.WaitingOutside > 0 {
			t.add(l.Limit.Name, "outside of jobs", "", "", strconv.FormatInt(l.HeldOutside, 10), strconv.Itoa(l.WaitingOutside), "", "", "")
		}
		if l.MoreHolders > 0 {
			t.add(l.Limit.Name, fmt.Sprintf("and %d more holds", l.MoreHolders), "", "", "", "", "", "", "")
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if i := slices.IndexFunc(list, func(l workflow.LimitInfo) bool { return l.Engines > 0 }); i >= 0 {
		a.remark("WAITING, and IN USE of limits that are not shared, are those of one of %d engines", list[i].Engines)
	}
	return nil
}

// keyOfHolder returns the key for which a case holds slots: " (of ada)".
func keyOfHolder(h workflow.LimitHolder) string {
	if h.Key == "" {
		return ""
	}
	return " (of " + h.Key + ")"
}

func (a *app) limit() *cobra.Command {
	cmd := &cobra.Command{Use: "limit", Short: "change the number of a limit, or remove such a change", RunE: a.group, Args: cobra.ArbitraryArgs}
	q, o := &asking{a: a}, owning{a: a}
	set := &cobra.Command{
		Use: "set LIMIT N", Short: "change the number of a limit; 0 pauses it",
		Long: paragraph("Change the number of a limit of functions: more or fewer slots, another rate. Work that holds the limit or was " +
			"admitted still counts. 0 pauses the limit: the jobs that need it wait. The database stores the number; to return to the " +
			"program's default, set that number. With --key, change the number of one key only, such as a customer; to return to the " +
			"number of the others, set that number."),
		Example: "  tasq limit set openai 120\n  tasq limit set openai 0\n  tasq limit set customers 20 --key ada",
		Args:    exactly("a LIMIT", "the number N"),
	}
	q.acting(set)
	set.Flags().StringVar(&q.command.LimitKey, "key", "", "set only the limit of this `key`, such as a customer")
	set.RunE = a.run(func(ctx context.Context, args []string) error {
		n, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || n < 0 {
			return usagef("%q is not a valid limit; use 0 to pause it, or a positive number", args[1])
		}
		q.command.Kind, q.command.Limit, q.command.N = workflow.KindSetLimit, args[0], n
		what := "limit " + args[0]
		if q.command.LimitKey != "" {
			what += " of " + q.command.LimitKey
		}
		return a.send(ctx, o, q, fmt.Sprintf("%s is set to %d", what, n))
	})
	cmd.AddCommand(set, a.forgetLimit())
	return cmd
}

func (a *app) forgetLimit() *cobra.Command {
	q, o := &asking{a: a}, owning{a: a}
	cmd := &cobra.Command{
		Use: "forget LIMIT", Short: "remove the stored settings of a limit",
		Long: paragraph("Remove the stored settings of a limit, including those of its keys: it has the number of its definition again. A limit " +
			"that no program defines any more is removed itself; tasq limits shows which limits no function uses."),
		Example: "  tasq limit forget openai",
		Args:    exactly("a LIMIT"),
	}
	q.acting(cmd)
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind, q.command.Limit = workflow.KindForgetLimit, args[0]
		return a.send(ctx, o, q, "the settings of limit "+args[0]+" are removed")
	})
	return cmd
}

func (a *app) queues() *cobra.Command {
	q, o := &asking{a: a}, owning{a: a}
	cmd := &cobra.Command{
		Use: "queues", Short: "list the job queues, with running and waiting jobs",
		Long: paragraph("List the job queues: how many jobs of each run at a time, how many the program defines, how many run and wait, and since when the " +
			"oldest waits. KEYS is how many keys have waiting jobs, in a queue that schedules its jobs fairly by keys. The running program reports this; without " +
			"one, nothing runs, and waiting jobs are counted in the database. If several programs have the database open, one of them reports, and ALL " +
			"RUNNING and ALL WAITING count the jobs of all."),
		Example: "  tasq queues",
		Args:    exactly(),
	}
	q.patience(cmd)
	w := watch{a: a, keys: []string{"queue"}, poll: watchRefresh}
	w.flag(cmd)
	cmd.RunE = w.reporting(q, func(ctx context.Context, r store.Reader) error {
		q.command.Kind = workflow.KindQueues
		result, answered, err := o.report(ctx, q)
		if err != nil || q.left() {
			return err
		}
		known := make(map[string]bool) // the queues of the engine that has answered
		if answered {
			for _, l := range result.Queues {
				known[l.Queue] = true
			}
			if result.Queues, err = why.QueuesOfFleet(ctx, r, now(), result.Queues); err == nil {
				err = why.QueuesSet(ctx, r, result.Queues)
			}
		} else {
			result.Queues, err = why.ReadQueues(ctx, r, now())
		}
		if err != nil {
			return err
		}
		return a.showQueues(result.Queues, known)
	})
	return cmd
}

// showQueues shows a list of queues. The workers of those that are not known to the engine that has answered are not known here.
func (a *app) showQueues(list []workflow.QueueInfo, known map[string]bool) error {
	if a.output == "json" {
		for _, l := range list {
			if err := a.object(queueObject(l, known[l.Queue])); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		a.remark("no queues: nothing waits, runs or is paused")
	}
	head := []string{"QUEUE", "WORKERS", "DEFINED", "RUNNING", "WAITING", "KEYS", "AT MOST", "OLDEST", "STATE", "SET BY", "REASON"}
	fleet := len(list) > 0 && list[0].Fleet != nil
	if fleet {
		head = append(head, "ALL RUNNING", "ALL WAITING")
	}
	t := a.table(head...)
	for _, l := range list {
		most, oldest, state, keys := "-", "-", "open", "-"
		if l.Keys > 0 {
			keys = strconv.Itoa(l.Keys)
		}
		if l.MaxPending > 0 {
			most = strconv.Itoa(l.MaxPending)
		}
		if l.Fleet != nil {
			l.Oldest = l.Fleet.Oldest
		}
		if !l.Oldest.IsZero() {
			oldest = l.Oldest.Format(time.RFC3339)
		}
		if l.Paused {
			state = "paused"
		}
		row := []string{queueName(l.Queue), workersOf(l), strconv.Itoa(l.Defined), strconv.Itoa(l.Running), strconv.Itoa(l.Waiting), keys, most, oldest,
			state, l.By, printable.Line(l.Reason)}
		if !known[l.Queue] {
			row[1], row[2] = "-", "-"
			if l.Set > 0 {
				row[1] = fmt.Sprintf("- of %d", l.Set)
			}
			if l.Fleet != nil { // the counts of the engine that has answered
				row[3], row[4] = "-", "-"
			}
		}
		if fleet {
			row = append(row, strconv.Itoa(l.Fleet.Running), strconv.Itoa(l.Fleet.Waiting))
		}
		t.add(row...)
		for _, k := range l.PausedKeys {
			t.add(queueName(l.Queue), "-", "-", "-", "-", "key "+printable.Line(k.Key), "-", "-", "paused", k.By, printable.Line(k.Reason))
		}
	}
	if err := t.flush(); err != nil || !fleet {
		return err
	}
	a.remark("WORKERS to AT MOST are those of one of %d engines; OLDEST, ALL RUNNING and ALL WAITING count the jobs of all", list[0].Fleet.Engines)
	return nil
}

// unknownQueue is a queue without what only an engine that has it could say.
type unknownQueue struct {
	workflow.QueueInfo
	Workers *int `json:"workers,omitempty"`
	Defined *int `json:"defined,omitempty"`
	Running *int `json:"running,omitempty"`
	Waiting *int `json:"waiting,omitempty"`
}

// queueObject returns the JSON form of a queue: numbers that are "-" in the table are left out.
func queueObject(l workflow.QueueInfo, known bool) any {
	if known {
		return l
	}
	u := unknownQueue{QueueInfo: l}
	if l.Fleet == nil { // otherwise these are the counts of the engine that has answered
		u.Running, u.Waiting = &l.Running, &l.Waiting
	}
	return u
}

func (a *app) queue() *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Short: "pause or resume a queue, or set its workers", RunE: a.group, Args: cobra.ArbitraryArgs}
	for _, c := range []struct {
		use, short, long, done string
		kind                   workflow.Kind
	}{
		{"pause QUEUE", "pause a queue: no job of it starts until it is resumed", "Pause a queue: no job of it starts, in any program. " +
			"Running jobs continue. The database stores the pause. \"\" is the default queue. With --key, only the jobs of one key of builder.FairBy are " +
			"paused, such as those of a customer; for a key of a limit, use tasq limit set NAME 0 --key KEY.", "is paused", workflow.KindPause},
		{"resume QUEUE", "resume a paused queue", "Resume a paused queue: its due jobs begin. With --key, one key of it is resumed.", "is resumed",
			workflow.KindUnpause},
	} {
		q, o := &asking{a: a}, owning{a: a}
		sub := &cobra.Command{Use: c.use, Short: c.short, Long: paragraph(c.long), Args: exactly("a QUEUE"),
			Example: "  tasq queue " + string([]rune(c.use)[:len(c.use)-len(" QUEUE")]) + " mail"}
		q.acting(sub)
		sub.Flags().StringVar(&q.command.QueueKey, "key", "", "only the jobs of this `key`, such as a customer")
		sub.RunE = a.run(func(ctx context.Context, args []string) error {
			q.command.Kind, q.command.Queue = c.kind, args[0]
			what := fmt.Sprintf("queue %q", args[0])
			if q.command.QueueKey != "" {
				what = fmt.Sprintf("key %q of ", q.command.QueueKey) + what
			}
			if err := a.send(ctx, o, q, what+" "+c.done); err != nil || q.left() {
				return err
			}
			return a.noteQueue(ctx, args[0])
		})
		cmd.AddCommand(sub)
	}
	cmd.AddCommand(a.queueWorkers())
	return cmd
}

func (a *app) queueWorkers() *cobra.Command {
	q, o := &asking{a: a}, owning{a: a}
	forget := false
	cmd := &cobra.Command{
		Use: "workers QUEUE [N]", Short: "set how many jobs of a queue run at a time",
		Long: paragraph("Set how many jobs of a queue run at a time, 1 or more, in each program that runs them. Running jobs continue. A program runs at " +
			"most as many as the larger of its Config.Workers and its number for the queue, and a queue that it stops stays stopped. The database stores the " +
			"number; --default returns to those of the programs. To stop a queue, pause it. \"\" is the default queue."),
		Example: "  tasq queue workers mail 5\n  tasq queue workers mail --default",
		Args:    cobra.RangeArgs(1, 2),
	}
	q.acting(cmd)
	cmd.Flags().BoolVar(&forget, "default", false, "return to the number of each program")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		if forget == (len(args) == 2) {
			return usagef("give the number N, or --default")
		}
		q.command.Kind, q.command.Queue = workflow.KindForgetWorkers, args[0]
		done := fmt.Sprintf("queue %q has as many workers as the programs say", args[0])
		if !forget {
			n, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || n < 1 {
				return usagef("%q is not a valid number of workers; give 1 or more, and use tasq queue pause to stop a queue", args[1])
			}
			q.command.Kind, q.command.N = workflow.KindSetWorkers, n
			done = fmt.Sprintf("queue %q has %d workers", args[0], n)
		}
		if err := a.send(ctx, o, q, done); err != nil || q.left() {
			return err
		}
		return a.noteQueue(ctx, args[0])
	})
	return cmd
}

// workersOf returns how many jobs of a queue run at a time, and the configured number if it differs.
func workersOf(l workflow.QueueInfo) string {
	if l.Set > 0 && l.Set != l.Workers {
		return fmt.Sprintf("%d of %d", l.Workers, l.Set)
	}
	return strconv.Itoa(l.Workers)
}

// acting declares the flags of commands that concern no case.
func (q *asking) acting(cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.command.Actor, "by", "", "`name` of the actor (default: the environment variable USER)")
	cmd.Flags().StringVar(&q.reason, "reason", "", "`reason`, which is stored with the setting")
	q.dryRunFlag(cmd)
	q.patience(cmd)
}

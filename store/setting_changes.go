package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/limit"
)

// settingChanges are the commands that have changed a setting: the journal has only what happens to cases, and a setting only
// the last decision. Records are added with the setting, and never changed. A key is the time of the command and an id.
var settingChanges = domain.Collection[string, SettingChange]{Name: "tasq-settings"}

// SettingChange is a command that has changed a setting of a queue, a limit or a workflow, or an engine that was opened with another
// definition of a limit, which is the actor then.
type SettingChange struct {
	Decision

	Command string        `json:"command"` // as [Entry.Command], without a key
	Setting string        `json:"setting"` // the name of the [Setting], such as "queue/mail"
	Values  []ValueChange `json:"values"`  // one at least
}

// ValueChange is a value of a setting before and after a command.
type ValueChange struct {
	What string `json:"what"`           // "queue", "workers", "limit", "definition" (of a limit) or "workflow"
	Key  string `json:"key,omitempty"`  // of the queue or the limit; "" if it is not about a key
	From string `json:"from,omitempty"` // "open", "paused", "suspended", a number, or a definition in words; "" if nothing was set
	To   string `json:"to,omitempty"`
}

// NoteSetting records in the transaction of a command that it has changed a setting, for [Acts]. The id is a new one, which is greater
// than those of earlier commands.
func NoteSetting(ctx context.Context, tx Tx, id string, c SettingChange) error {
	c.At = c.At.UTC()
	return settingChanges.Put(ctx, tx.DB(), removalKey(c.At, id), c)
}

func (c SettingChange) entry() *Entry {
	return &Entry{At: c.At, By: c.By, Command: c.Command, Setting: &c}
}

// ValuesChanged compares two values of the setting with a name. A nil value is no setting. A value is listed, too, if only who set it, when
// and why has changed. One that cannot be read is "unreadable".
func ValuesChanged(name string, from, to json.RawMessage) []ValueChange {
	var d difference
	switch kind, _, _ := strings.Cut(name, "/"); kind + "/" {
	case QueueSetting:
		d.queues(decode[QueueValue](&d, "queue", from), decode[QueueValue](&d, "queue", to))
	case LimitSetting:
		d.limits(decode[*LimitValue](&d, "limit", from), decode[*LimitValue](&d, "limit", to))
	case WorkflowSetting:
		before, after := decode[*Decision](&d, "workflow", from), decode[*Decision](&d, "workflow", to)
		d.add(ValueChange{What: "workflow", From: suspended(before), To: suspended(after)}, deref(before), deref(after))
	}
	return d
}

// difference collects changed values.
type difference []ValueChange

func decode[T any](d *difference, what string, raw json.RawMessage) (v T) {
	if raw == nil {
		return v
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		*d = append(*d, ValueChange{What: what, From: "unreadable"})
		return *new(T)
	}
	return v
}

// add adds a value unless it and the decision about it are as before.
func (d *difference) add(v ValueChange, before, after Decision) {
	same := before.At.Equal(after.At) && before.By == after.By && before.Reason == after.Reason
	if v.From != v.To || !same {
		*d = append(*d, v)
	}
}

func (d *difference) queues(from, to QueueValue) {
	d.add(ValueChange{What: "queue", From: paused(from.Paused), To: paused(to.Paused)}, from.Decision, to.Decision)
	workers := func(w *WorkersValue) (string, Decision) {
		if w == nil {
			return "", Decision{}
		}
		return strconv.Itoa(w.N), w.Decision
	}
	before, by := workers(from.Workers)
	after, now := workers(to.Workers)
	d.add(ValueChange{What: "workers", From: before, To: after}, by, now)
	for _, key := range keysOf(from.Keys, to.Keys) {
		_, was := from.Keys[key]
		_, is := to.Keys[key]
		d.add(ValueChange{What: "queue", Key: key, From: paused(was), To: paused(is)}, from.Keys[key], to.Keys[key])
	}
}

func (d *difference) limits(from, to *LimitValue) {
	number := func(v *LimitValue) string {
		if v == nil {
			return ""
		}
		return strconv.FormatInt(v.Current().N, 10)
	}
	before, after := deref(from), deref(to)
	redefined := from != nil && to != nil && before.Limit != after.Limit
	if redefined {
		*d = append(*d, ValueChange{What: "definition", From: defined(before.Limit), To: defined(after.Limit)})
	}
	if !redefined || before.N != nil || after.N != nil { // otherwise the definition says it
		d.add(ValueChange{What: "limit", From: number(from), To: number(to)}, before.Decision, after.Decision)
	}
	of := func(v LimitValue, key string) string {
		if k, ok := v.Keys[key]; ok {
			return strconv.FormatInt(k.N, 10)
		}
		return ""
	}
	for _, key := range keysOf(before.Keys, after.Keys) {
		d.add(ValueChange{What: "limit", Key: key, From: of(before, key), To: of(after, key)}, before.Keys[key].Decision, after.Keys[key].Decision)
	}
}

// defined describes the definition of a limit without its name: "5 slots", "100 in 1m0s (sliding-window), shared".
func defined(l limit.Limit) string {
	text, each := "", int64(1)
	switch l.Algorithm {
	case limit.Slots:
		text = printable.Plural(int(l.N), "slot")
	case limit.CircuitBreaker:
		text = fmt.Sprintf("open for %v at %g%% failures of %d or more in %v, probes: %d", l.Pause, 100*l.Share, l.Least, l.Per, l.N)
	default:
		text, each = fmt.Sprintf("%d in %v (%v)", l.N, l.Per, l.Algorithm), 0
	}
	if l.Each != each {
		text += fmt.Sprintf(", each %d", l.Each)
	}
	if l.InStore {
		text += ", shared"
	}
	return text
}

func paused(is bool) string {
	if is {
		return "paused"
	}
	return "open"
}

func suspended(by *Decision) string {
	if by != nil {
		return "suspended"
	}
	return "open"
}

func deref[T any](v *T) (none T) {
	if v == nil {
		return none
	}
	return *v
}

// keysOf returns the keys of two maps, sorted.
func keysOf[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]V)
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

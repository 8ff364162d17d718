package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workflow"
)

// Decision says when, by whom and why a setting was changed. The zero value is unknown.
type Decision struct {
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Again returns the decision after one that sets the same again: without a reason, or with the same one, it changes nothing, and another
// reason replaces who, when and why. So does the second suspension of a case.
func (d Decision) Again(next Decision) Decision {
	if next.Reason == "" || next.Reason == d.Reason {
		return d
	}
	return next
}

// QueueValue is the value of a QueueSetting: the pause of a queue or of keys of it, and its number of workers. The zero value has no effect.
type QueueValue struct {
	Paused bool `json:"paused"`
	Decision

	Workers *WorkersValue `json:"workers,omitempty"` // nil is the number of each program's configuration

	Keys map[string]Decision `json:"keys,omitempty"` // the keys of builder.FairBy that are paused; nil is none
}

// IsZero reports whether nothing is set.
func (v QueueValue) IsZero() bool {
	return !v.Paused && v.Decision == (Decision{}) && v.Workers == nil && len(v.Keys) == 0
}

// PausedKeys lists the keys that are paused, sorted.
func (v QueueValue) PausedKeys() (list []workflow.PausedKey) {
	for _, key := range slices.Sorted(maps.Keys(v.Keys)) {
		by := v.Keys[key]
		list = append(list, workflow.PausedKey{Key: key, At: by.At, By: by.By, Reason: by.Reason})
	}
	return list
}

// Last returns the last decision that is in effect: that of the pause or that of the number of workers.
func (v QueueValue) Last() Decision {
	if v.Workers != nil && (!v.Paused || v.Workers.At.After(v.At)) {
		return v.Workers.Decision
	}
	return v.Decision
}

// WorkersValue is how many jobs of a queue run concurrently in each engine.
type WorkersValue struct {
	N int `json:"n"`
	Decision
}

// LimitValue is the value of a LimitSetting: the definition of a limit, and the numbers that were set instead.
type LimitValue struct {
	Limit limit.Limit `json:"limit"`
	N     *int64      `json:"n,omitempty"` // nil is that of the definition
	Decision

	Keys map[string]KeyValue `json:"keys,omitempty"` // the numbers of single keys; nil is none

	// Earlier has the definitions that were replaced, the latest last: those of earlier versions of the program.
	Earlier []limit.Limit `json:"earlier,omitempty"`
}

// KeyValue is the stored number of one key of a limit.
type KeyValue struct {
	N int64 `json:"n"`
	Decision
}

// TakesValue is the value of a TakesSetting: what each attempt of the functions of a definition acquires of limits before it starts,
// and which functions are scheduled fairly by a key.
type TakesValue struct {
	Tasks map[string][]Takes `json:"tasks,omitempty"` // of the items of a task, by its name
	Calls map[string][]Takes `json:"calls,omitempty"` // of the jobs of a function, by its name

	FairTasks []string `json:"fairTasks,omitempty"` // the tasks with fair scheduling by a key of the input, sorted
	FairCalls []string `json:"fairCalls,omitempty"` // the functions with fair scheduling, sorted
}

// IsZero reports whether the value is empty.
func (v TakesValue) IsZero() bool {
	return len(v.Tasks)+len(v.Calls)+len(v.FairTasks)+len(v.FairCalls) == 0
}

// Holds reports whether cases hold slots of a limit over several tasks. The name "" stands for any limit.
func (v TakesValue) Holds(name string) bool {
	for _, list := range v.Tasks {
		for _, t := range list {
			if t.Until != "" && (name == "" || t.Limit == name) {
				return true
			}
		}
	}
	return false
}

// Takes is what an attempt acquires of one limit.
type Takes struct {
	Limit string   `json:"limit"`           // its name
	N     int64    `json:"n,omitempty"`     // how much; 0 if the input decides
	Keyed bool     `json:"keyed,omitempty"` // the input decides the key
	Any   []string `json:"any,omitempty"`   // the keys of a pool
	Until string   `json:"until,omitempty"` // the task at whose end the case releases it; "" if each attempt releases it
}

// ReadTakes decodes what functions acquire of limits, by the fingerprint of their definition. The error names a setting that cannot be
// decoded.
func ReadTakes(all []Setting) (map[string]TakesValue, error) {
	takes := make(map[string]TakesValue)
	for _, s := range all {
		fingerprint, ok := strings.CutPrefix(s.Name, TakesSetting)
		if !ok {
			continue
		}
		var v TakesValue
		if err := json.Unmarshal(s.Value, &v); err != nil {
			return nil, fmt.Errorf("the setting %s cannot be read: %w", s.Name, err)
		}
		takes[fingerprint] = v
	}
	return takes, nil
}

// Current returns the limit with the number that is in effect.
func (v LimitValue) Current() limit.Limit {
	if v.N != nil {
		return with(v.Limit, *v.N)
	}
	return v.Limit
}

// CurrentOf returns the limits of the keys with a number of their own; all other keys have
// LimitValue.Current.
func (v LimitValue) CurrentOf() map[string]limit.Limit {
	all := make(map[string]limit.Limit, len(v.Keys))
	for key, set := range v.Keys {
		all[key] = with(v.Limit, set.N)
	}
	return all
}

// with is a limit with another number.
// Each is lowered with it: an acquisition of more than there is would wait without end. A limit of 0 is paused, and
// admits nothing whatever Each is.
func with(l limit.Limit, n int64) limit.Limit {
	if l.N = n; l.Each > n && n > 0 {
		l.Each = n
	}
	return l
}

// SettingsDigest returns a digest that changes whenever a setting does: the SHA-256, in hexadecimal, of a line "name=value" for each
// setting, sorted by name.
// PostgreSQL computes the same digest in the statement of each Tick, and an engine reads the settings only if it
// differs from that of the settings in force. So both must produce the same bytes.
func SettingsDigest(all []Setting) string {
	h := sha256.New()
	for _, s := range all {
		_, _ = fmt.Fprintf(h, "%s=%s\n", s.Name, s.Value) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ReadControls decodes the settings of limits and of queues, by name; other settings are skipped. The error names a setting that
// cannot be decoded.
func ReadControls(all []Setting) (limits map[string]LimitValue, queues map[string]QueueValue, err error) {
	limits, queues = make(map[string]LimitValue), make(map[string]QueueValue)
	for _, s := range all {
		if name, ok := strings.CutPrefix(s.Name, LimitSetting); ok {
			var v LimitValue
			err = json.Unmarshal(s.Value, &v)
			limits[name] = v
		} else if name, ok := strings.CutPrefix(s.Name, QueueSetting); ok {
			var v QueueValue
			err = json.Unmarshal(s.Value, &v)
			queues[name] = v
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the setting %s cannot be read: %w", s.Name, err)
		}
	}
	return limits, queues, nil
}

// ReadSuspensions decodes which workflows are suspended, by name, with the decision that suspended each; other settings are skipped.
// A case that is created while its workflow is suspended begins suspended. The error names a setting that cannot be decoded.
func ReadSuspensions(all []Setting) (map[string]Decision, error) {
	var suspended map[string]Decision // nil in most databases
	for _, s := range all {
		name, ok := strings.CutPrefix(s.Name, WorkflowSetting)
		if !ok {
			continue
		}
		var d Decision
		if err := json.Unmarshal(s.Value, &d); err != nil {
			return nil, fmt.Errorf("the setting %s cannot be read: %w", s.Name, err)
		}
		if suspended == nil {
			suspended = make(map[string]Decision)
		}
		suspended[name] = d
	}
	return suspended, nil
}

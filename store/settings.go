package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/limit"
)

// Decision is when a setting was decided, and by whom. The zero value is unknown.
type Decision struct {
	At time.Time `json:"at,omitzero"`
	By string    `json:"by,omitempty"`
}

// QueueValue is the value of a [QueueSetting]: that of a queue that is paused, or has another number of workers than programs give it. The zero
// value is any other queue.
type QueueValue struct {
	Paused bool `json:"paused"`
	Decision

	Workers *WorkersValue `json:"workers,omitempty"` // nil is as many as the programs say
}

// WorkersValue is how many jobs of a queue run at a time in each engine that runs them.
type WorkersValue struct {
	N int `json:"n"`
	Decision
}

// LimitValue is the value of a [LimitSetting]: how a limit is defined, and what was set in place of its number.
type LimitValue struct {
	Limit limit.Limit `json:"limit"`
	N     *int64      `json:"n,omitempty"` // nil is that of the definition
	Decision

	Keys map[string]KeyValue `json:"keys,omitempty"` // what was set for single keys of it, by those; nil is nothing
}

// KeyValue is the number that was set for one key of a limit.
type KeyValue struct {
	N int64 `json:"n"`
	Decision
}

// TakesValue is the value of a [TakesSetting]: what each attempt of the functions of a definition takes of limits before it begins, and
// which of them take turns.
type TakesValue struct {
	Tasks map[string][]Takes `json:"tasks,omitempty"` // of the items of a task, by its name
	Calls map[string][]Takes `json:"calls,omitempty"` // of the jobs of a function, by its name

	FairTasks []string `json:"fairTasks,omitempty"` // the tasks whose items take turns by a key of their input, sorted
	FairCalls []string `json:"fairCalls,omitempty"` // the functions whose jobs do, sorted
}

// IsZero reports whether functions take nothing and have no turns.
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

// Takes is what an attempt takes of one limit.
type Takes struct {
	Limit string   `json:"limit"`           // its name
	N     int64    `json:"n,omitempty"`     // how much; 0 is decided by the input
	Keyed bool     `json:"keyed,omitempty"` // of a key that is decided by the input
	Any   []string `json:"any,omitempty"`   // the keys of which any will do
	Until string   `json:"until,omitempty"` // the task that ends it, if the case holds it from the first attempt on; "" for the attempt alone
}

// ReadTakes finds what functions take of limits, by the fingerprint of their definition. The error names a setting that cannot be read.
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

// Current is the limit as it is set.
func (v LimitValue) Current() limit.Limit {
	if v.N != nil {
		return with(v.Limit, *v.N)
	}
	return v.Limit
}

// CurrentOf is the limit of each key that was set for itself; the others have [LimitValue.Current].
func (v LimitValue) CurrentOf() map[string]limit.Limit {
	all := make(map[string]limit.Limit, len(v.Keys))
	for key, set := range v.Keys {
		all[key] = with(v.Limit, set.N)
	}
	return all
}

// with is a limit with another number.
func with(l limit.Limit, n int64) limit.Limit {
	if l.N = n; l.Each > n && n > 0 {
		l.Each = n
	}
	return l
}

// SettingsDigest is a text that is another one if the settings are: the SHA-256 of "name=value" and a line feed for each, in the order of
// names, in hexadecimal.
func SettingsDigest(all []Setting) string {
	h := sha256.New()
	for _, s := range all {
		_, _ = fmt.Fprintf(h, "%s=%s\n", s.Name, s.Value) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ReadControls sorts settings into those of limits and those of queues, by name. Others are left out. The error names a setting that
// cannot be read.
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

package record

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
)

// The states of an engine.
const (
	EngineLive    = "live"
	EngineOverdue = "overdue" // its heartbeats have stopped: another engine will declare it dead, or one that is opened
	EngineDead    = "dead"    // it was declared dead within a day, and its jobs are free
)

// Engine is the JSON form of an engine that has a database open, or was declared dead. Durations are those of [time.Duration.String].
type Engine struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"` // host and process
	State       string    `json:"state"`
	Joined      time.Time `json:"joined"`
	Held        int64     `json:"held"`
	Running     int64     `json:"running"`
	Lag         string    `json:"lag,omitempty"`
	Definitions int       `json:"definitions"`
	Knows       []string  `json:"knows,omitempty"` // its definitions, as name and version, sorted
	Silent      string    `json:"silent"`
	Skew        string    `json:"skew,omitempty"`

	// Of a dead one, Held and Running are what it held when it was declared dead; Lag, Skew and Knows are not known.
	Died       time.Time `json:"died,omitzero"`
	DeclaredBy string    `json:"declared_by,omitempty"` // the process that declared it dead
}

// Engines returns the engines that have a database open, in the order in which they joined, and behind them those that were declared dead
// within a day, the latest first. ok is false for a file, which has one engine at most and does not list it. The error is that of the
// reader.
func Engines(ctx context.Context, r store.Reader) (rows []*Engine, ok bool, err error) {
	fleet, ok := r.(store.Members)
	if !ok {
		return nil, false, nil
	}
	members, err := fleet.Members(ctx)
	if err != nil {
		return nil, true, err
	}
	defs, err := r.Definitions(ctx)
	if err != nil {
		return nil, true, err
	}
	names := make(map[string]string, len(defs))
	for _, d := range defs {
		names[d.Fingerprint] = strings.TrimSpace(d.Name + " " + d.Version)
	}
	for _, m := range members {
		row := &Engine{ID: m.ID, Name: m.Name, State: EngineLive, Joined: m.Joined, Held: m.Held, Running: m.Running, Lag: brief(m.Lag), Definitions: m.Definitions,
			Silent: brief(m.Silent), Skew: brief(m.Skew)}
		if m.Overdue() {
			row.State = EngineOverdue
		}
		for _, print := range m.Fingerprints {
			row.Knows = append(row.Knows, cmp.Or(names[print], print)) // a definition that was removed has its fingerprint alone
		}
		slices.Sort(row.Knows)
		rows = append(rows, row)
	}
	dead, err := fleet.Dead(ctx)
	for _, d := range dead {
		rows = append(rows, &Engine{ID: d.ID, Name: d.Name, State: EngineDead, Joined: d.Joined, Held: d.Held, Running: d.Running, Silent: brief(d.Silent),
			Died: d.Died, DeclaredBy: d.By})
	}
	return rows, true, err
}

// Living divides engines into those that have the database open, and those that were declared dead.
func Living(all []*Engine) (live, dead []*Engine) {
	n := slices.IndexFunc(all, func(e *Engine) bool { return e.State == EngineDead })
	if n < 0 {
		return all, nil
	}
	return all[:n], all[n:]
}

// Known says how many definitions an engine has, and which: "-" if none are recorded, as of an engine that has the database alone.
func (e *Engine) Known(count string) string {
	if len(e.Knows) == 0 {
		return "-"
	}
	return count + ": " + strings.Join(e.Knows, ", ")
}

// brief writes a duration to the millisecond, and one of ten seconds or more to the second.
func brief(d time.Duration) string {
	if d.Abs() >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

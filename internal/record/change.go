package record

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Change is the JSON form of one event of a history.
type Change struct {
	Seq     int64           `json:"seq"` // position of the command in the journal
	At      time.Time       `json:"at"`
	Command string          `json:"command"`
	By      string          `json:"by,omitempty"`
	Key     string          `json:"key,omitempty"`
	Case    workitem.CaseID `json:"case"`
	Text    string          `json:"text"`
	Event   json.RawMessage `json:"event"`
}

// Act is the JSON form of a command with an actor.
type Act struct {
	Seq     int64           `json:"seq"` // position of the command in the journal
	At      time.Time       `json:"at"`
	By      string          `json:"by"`
	Command string          `json:"command"`
	Reason  string          `json:"reason,omitempty"`
	Root    workitem.CaseID `json:"root,omitzero"`

	// The change of a setting has no Seq and no Root.
	Setting string              `json:"setting,omitempty"` // such as "queue/mail"
	Values  []store.ValueChange `json:"values,omitempty"`
}

// OfAct returns the JSON form of an entry of the journal as a command with an actor.
func OfAct(e *store.Entry) Act {
	act := Act{Seq: e.Seq, At: e.At, By: e.By, Command: e.Command, Reason: reasonOf(e), Root: e.Root}
	if e.Setting != nil {
		act.Reason, act.Setting, act.Values = e.Setting.Reason, e.Setting.Setting, e.Setting.Values
	}
	return act
}

// Line returns the command on one line, with what it has changed of a setting: "set-workers mail 3 (workers 2 -> 3)".
func (a Act) Line() string {
	if len(a.Values) == 0 {
		return printable.Line(a.Command)
	}
	words := make([]string, len(a.Values))
	for i, v := range a.Values {
		what := v.What + " "
		if v.Key != "" {
			what = "key " + v.Key + " "
		} else if v.What != "workers" && v.What != "definition" {
			what = "" // the command says it
		}
		words[i] = what + cmp.Or(v.From, "not set") + " -> " + cmp.Or(v.To, "not set")
	}
	return printable.Line(a.Command + " (" + strings.Join(words, ", ") + ")")
}

// reasonOf returns the reason that an actor gave with a command: as a note or as part of its first effect.
func reasonOf(e *store.Entry) string {
	cancels := strings.HasPrefix(e.Command, "case cancel ") || strings.HasPrefix(e.Command, "item cancel ") || strings.HasPrefix(e.Command, "item fail ")
	for _, c := range e.Changes {
		switch c := c.(type) {
		case *state.Noted:
			if c.Code == state.NoteReason {
				return c.Text
			}
		case *state.CaseSuspended:
			return c.Suspension.Reason
		case *state.CaseEnded:
			if cancels && c.Failure != nil {
				return c.Failure.String()
			}
		case *state.ItemMoved:
			if cancels && c.Failure != nil {
				return c.Failure.String()
			}
		}
	}
	return ""
}

package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// netDoc is the JSON form of a definition. What most nets have is left out. The net of a workflow with one task is
//
//	{"name":"article",
//	 "conditions":[{"name":"start","role":"start"},{"name":"end","role":"end"}],
//	 "tasks":[{"name":"draft"}],
//	 "flows":[["start","draft"],["draft","end"]]}
//
// It has no source positions: they say where a net was written, and not what it is.
type netDoc struct {
	Name       string         `json:"name"`
	Conditions []conditionDoc `json:"conditions"`
	Tasks      []taskDoc      `json:"tasks"`
	Flows      [][2]string    `json:"flows"` // from, to
}

type conditionDoc struct {
	Name string `json:"name"`
	Role string `json:"role,omitempty"` // "" for an ordinary one
}

type taskDoc struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind,omitempty"`  // "" for atomic
	Join    string   `json:"join,omitempty"`  // "" for and
	Split   string   `json:"split,omitempty"` // "" for and
	Cancels []string `json:"cancels,omitempty"`
	Of      []string `json:"of,omitempty"`
}

// The words of stored nets, by the value of the constant in package net. A word is never changed or reused: databases
// have it. The word for the usual value is empty, so that the field is left out.
var (
	roleWords = []string{"", "start", "end"}
	kindWords = []string{"", "routing", "composite"}
	ruleWords = []string{"", "xor", "or"}
)

// EncodeNet encodes a net's definition as JSON. Equal nets have equal texts: an empty list is [], never null, whether it
// is nil in the definition or not. The error names a value that has no word.
func EncodeNet(d *net.Definition) (json.RawMessage, error) {
	doc := netDoc{Name: d.Name, Conditions: []conditionDoc{}, Tasks: []taskDoc{}, Flows: [][2]string{}}
	for _, c := range d.Conditions {
		role, err := wordOf("role", roleWords, int(c.Role))
		if err != nil {
			return nil, fmt.Errorf("condition %s of workflow %s: %w", c.Name, d.Name, err)
		}
		doc.Conditions = append(doc.Conditions, conditionDoc{Name: c.Name, Role: role})
	}
	for _, t := range d.Tasks {
		kind, err1 := wordOf("kind", kindWords, int(t.Kind))
		join, err2 := wordOf("join", ruleWords, int(t.Join))
		split, err3 := wordOf("split", ruleWords, int(t.Split))
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				return nil, fmt.Errorf("task %s of workflow %s: %w", t.Name, d.Name, err)
			}
		}
		doc.Tasks = append(doc.Tasks,
			taskDoc{Name: t.Name, Kind: kind, Join: join, Split: split, Cancels: t.Cancels, Of: t.Of})
	}
	for _, f := range d.Flows {
		doc.Flows = append(doc.Flows, [2]string{f.From, f.To})
	}
	return json.Marshal(doc)
}

// DecodeNet decodes what [EncodeNet] has encoded. The error wraps [ErrCorrupt]. It does not check that the net is well
// formed, which package net does for every definition, wherever it comes from.
func DecodeNet(data []byte) (*net.Definition, error) {
	var doc netDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, corrupt("net", data, err)
	}
	d := &net.Definition{Name: doc.Name}
	for _, c := range doc.Conditions {
		role := slices.Index(roleWords, c.Role)
		if role < 0 {
			return nil, corrupt("net", data, fmt.Errorf("%q is not a role of a condition", c.Role))
		}
		d.Conditions = append(d.Conditions, net.Condition{Name: c.Name, Role: net.Role(role)})
	}
	for _, t := range doc.Tasks {
		kind := slices.Index(kindWords, t.Kind)
		join, split := slices.Index(ruleWords, t.Join), slices.Index(ruleWords, t.Split)
		if kind < 0 || join < 0 || split < 0 {
			return nil, corrupt("net", data, fmt.Errorf("task %q has the kind %q, the join %q and the split %q",
				t.Name, t.Kind, t.Join, t.Split))
		}
		d.Tasks = append(d.Tasks, net.Task{Name: t.Name, Kind: net.Kind(kind), Join: net.Rule(join),
			Split: net.Rule(split), Cancels: t.Cancels, Of: t.Of})
	}
	for _, f := range doc.Flows {
		d.Flows = append(d.Flows, net.Flow{From: f[0], To: f[1]})
	}
	return d, nil
}

func wordOf(what string, words []string, i int) (string, error) {
	if i < len(words) {
		return words[i], nil
	}
	return "", fmt.Errorf("%d is not a %s", i, what)
}

package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/net"
)

// AppendMarking appends a marking as a JSON object from names of conditions to numbers of tokens. Empty conditions are
// left out, so it is short also for a large net:
//
//	{"draft->review":1,"paid":2}
func AppendMarking(dst []byte, n *net.Net, m net.Marking) []byte {
	dst = append(dst, '{')
	first := true
	for c, tokens := range m {
		if tokens == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, n.ConditionName(net.ConditionID(c))), ':')
		dst = strconv.AppendInt(dst, int64(tokens), 10)
	}
	return append(dst, '}')
}

// DecodeMarking decodes what [AppendMarking] has encoded. The error wraps [ErrCorrupt].
func DecodeMarking(data []byte, n *net.Net) (net.Marking, error) {
	var tokens map[string]int32
	if err := json.Unmarshal(data, &tokens); err != nil {
		return nil, corrupt("marking", data, err)
	}
	m := make(net.Marking, n.NumConditions())
	for name, count := range tokens {
		c, ok := n.ConditionByName(name)
		if !ok || count < 0 {
			return nil, corrupt("marking", data, fmt.Errorf("workflow %s cannot have %d tokens in condition %q",
				n.Name(), count, name))
		}
		m[c] = count
	}
	return m, nil
}

// The names are part of the format of the database, and do not follow those of the fields of Task.
type taskWire struct {
	State   string          `json:"state"`
	Gen     int             `json:"gen"`
	Created int             `json:"created"`
	Output  json.RawMessage `json:"output"`
	Lost    bool            `json:"lost"`
}

// AppendTasks appends the tasks of a case as a JSON object from the name of a task to its state, its generation
// ("gen"), the number of items created in it ("created"), its output, and whether the failure of the case ended it
// ("lost"). A task that was never enabled is left out. Of a draft that was written twice, and is in review:
//
//	{"draft":{"state":"completed","gen":2,"created":1,"output":"On Petri nets"},
//	 "review":{"state":"started","gen":1,"created":1}}
func AppendTasks(dst []byte, n *net.Net, tasks []Task) []byte {
	dst = append(dst, '{')
	first := true
	for i := range tasks {
		t := &tasks[i]
		// A disabled task with a generation was enabled before, and its next activation has the next number.
		if t.State == TaskDisabled && t.Generation == 0 && t.Created == 0 && len(t.Output) == 0 && !t.Lost {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, n.TaskName(net.TaskID(i))), `:{"state":"`...)
		dst = append(append(dst, t.State.String()...), '"')
		dst = num(dst, "gen", int64(t.Generation))
		dst = num(dst, "created", int64(t.Created))
		dst = append(flag(raw(dst, "output", t.Output), "lost", t.Lost), '}')
	}
	return append(dst, '}')
}

// DecodeTasks decodes what [AppendTasks] has encoded. The error wraps [ErrCorrupt].
func DecodeTasks(data []byte, n *net.Net) ([]Task, error) {
	var rows map[string]taskWire
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, corrupt("list of tasks", data, err)
	}
	tasks := make([]Task, n.NumTasks())
	for name, w := range rows {
		t, ok := n.TaskByName(name)
		state, err := parseTaskState(w.State)
		if !ok || err != nil {
			return nil, corrupt("list of tasks", data, fmt.Errorf("workflow %s cannot have a task %q that is %q",
				n.Name(), name, w.State))
		}
		tasks[t] = Task{State: state, Generation: w.Gen, Created: w.Created, Output: w.Output, Lost: w.Lost}
	}
	return tasks, nil
}

// AppendSuspension appends the JSON of a suspension, "null" for nil.
func AppendSuspension(dst []byte, s *Suspension) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	dst = strconv.AppendInt(append(dst, `{"at":`...), Micros(s.At), 10)
	return append(str(str(dst, "by", s.By), "text", s.Reason), '}')
}

// DecodeSuspension decodes what [AppendSuspension] has encoded. The error wraps [ErrCorrupt].
func DecodeSuspension(data []byte) (*Suspension, error) {
	var w *struct {
		At   micros `json:"at"`
		By   string `json:"by"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, corrupt("suspension", data, err)
	}
	if w == nil {
		return nil, nil
	}
	return &Suspension{At: time.Time(w.At), By: w.By, Reason: w.Text}, nil
}

// AppendLabels appends labels as a JSON object, sorted by name, so that equal labels have equal texts.
func AppendLabels(dst []byte, labels map[string]string) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(labels)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(appendString(dst, name), ':'), labels[name])
	}
	return append(dst, '}')
}

// DecodeLabels decodes what [AppendLabels] has encoded. The error wraps [ErrCorrupt].
func DecodeLabels(data []byte) (labels map[string]string, err error) {
	if err = json.Unmarshal(data, &labels); err != nil {
		err = corrupt("labels", data, err)
	}
	return labels, err
}

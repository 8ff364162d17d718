package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

// SettingChange describes the change of a setting of a queue, a limit or a workflow on one line. A nil value is no setting. The error says
// that a value cannot be read.
func SettingChange(name string, from, to json.RawMessage) (string, error) {
	kind, rest, _ := strings.Cut(name, "/")
	what, words := kind+" "+rest, wordsOfWorkflow
	switch kind + "/" {
	case store.QueueSetting:
		what, words = fmt.Sprintf("queue %q", rest), wordsOfQueue
	case store.LimitSetting:
		words = wordsOfLimit
	}
	before, err := words(from)
	if err != nil {
		return "", fmt.Errorf("setting %s: %w", name, err)
	}
	after, err := words(to)
	if err != nil {
		return "", fmt.Errorf("setting %s: %w", name, err)
	}
	return printable.Line(what + ": " + before + " -> " + after), nil
}

func wordsOfQueue(raw json.RawMessage) (string, error) {
	v, err := valueOf[store.QueueValue](raw)
	if err != nil {
		return "", err
	}
	words := []string{"open"}
	if v.Paused {
		words[0] = "paused" + decidedBy(v.Decision)
	}
	if v.Workers != nil {
		words = append(words, printable.Plural(v.Workers.N, "worker")+decidedBy(v.Workers.Decision))
	}
	for _, key := range slices.Sorted(maps.Keys(v.Keys)) {
		words = append(words, "key "+key+" paused"+decidedBy(v.Keys[key]))
	}
	return strings.Join(words, ", "), nil
}

func wordsOfLimit(raw json.RawMessage) (string, error) {
	v, err := valueOf[store.LimitValue](raw)
	if err != nil || raw == nil {
		return "none", err
	}
	words := []string{fmt.Sprintf("%d (as defined)", v.Limit.N)}
	if v.N != nil {
		words[0] = fmt.Sprint(*v.N) + decidedBy(v.Decision)
	}
	for _, key := range slices.Sorted(maps.Keys(v.Keys)) {
		words = append(words, fmt.Sprintf("key %s %d", key, v.Keys[key].N)+decidedBy(v.Keys[key].Decision))
	}
	return strings.Join(words, ", "), nil
}

func wordsOfWorkflow(raw json.RawMessage) (string, error) {
	v, err := valueOf[store.Decision](raw)
	if err != nil || raw == nil {
		return "not suspended", err
	}
	return "suspended" + decidedBy(v), nil
}

func valueOf[T any](raw json.RawMessage) (v T, err error) {
	if raw != nil {
		err = json.Unmarshal(raw, &v)
	}
	return v, err
}

// decidedBy returns by whom and why something was set: " by ann (the server moves)".
func decidedBy(d store.Decision) string {
	text := ""
	if d.By != "" {
		text = " by " + d.By
	}
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	return text
}

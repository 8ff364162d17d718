package net

import (
	"strconv"
	"strings"
)

// notation reads a definition from the small notation that the tests of this package share: a word and what it declares
// on a line of its own, "a -> b, c" for flows, "cancel t: b, c" for a cancellation region. Every position is a line of
// the text. Words it does not know declare nothing.
func notation(text string) *Definition {
	d := &Definition{Name: "w"}
	for i, line := range strings.Split(text, "\n") {
		pos := Pos{File: "w.net", Line: i + 1}
		if from, to, ok := strings.Cut(line, "->"); ok {
			for _, name := range strings.Split(to, ",") {
				d.Flows = append(d.Flows, Flow{From: strings.TrimSpace(from), To: strings.TrimSpace(name), Pos: pos})
			}
			continue
		}
		if word, rest, ok := strings.Cut(line, ":"); ok {
			cancels(d, strings.Fields(word)[1], rest)
			continue
		}
		if words := strings.Fields(line); len(words) > 1 {
			declareLine(d, words[0], words[1:], pos)
		}
	}
	return d
}

func cancels(d *Definition, task, members string) {
	for i := range d.Tasks {
		if d.Tasks[i].Name == task {
			for _, name := range strings.Split(members, ",") {
				d.Tasks[i].Cancels = append(d.Tasks[i].Cancels, strings.ReplaceAll(strings.TrimSpace(name), ">", "->"))
			}
		}
	}
}

func declareLine(d *Definition, word string, rest []string, pos Pos) {
	switch word {
	case "workflow":
		d.Name, d.Pos = rest[0], pos
	case "start", "end", "condition":
		role := map[string]Role{"start": Start, "end": End}[word]
		for _, name := range rest {
			d.Conditions = append(d.Conditions, Condition{Name: name, Role: role, Pos: pos})
		}
	case "task", "dummy", "composite":
		t := Task{Name: rest[0], Kind: map[string]Kind{"dummy": Routing, "composite": Composite}[word], Pos: pos}
		gates := map[string]Rule{"and": And, "xor": Xor, "or": Or}
		for _, option := range rest[1:] {
			key, value, _ := strings.Cut(option, "=")
			switch key {
			case "join":
				t.Join = gates[value]
			case "split":
				t.Split = gates[value]
			case "of":
				t.Of = strings.Split(value, ",")
			}
		}
		d.Tasks = append(d.Tasks, t)
	}
}

// marked reads a marking from words: a condition has one token, "c=2" has two; a task that is named is busy.
func marked(n *Net, words string) (Marking, Bits) {
	m, busy := make(Marking, n.NumConditions()), NewBits(n.NumTasks())
	for _, word := range strings.Fields(words) {
		name, count, several := strings.Cut(word, "=")
		tokens := 1
		if several {
			tokens, _ = strconv.Atoi(count)
		}
		if t, ok := n.TaskByName(name); ok {
			busy.Add(int(t))
		} else if c, ok := n.ConditionByName(name); ok {
			m[c] = int32(tokens)
		} else {
			panic("no task or condition " + name)
		}
	}
	return m, busy
}

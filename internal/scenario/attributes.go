package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
)

// attribute is an attribute of a task line.
type attribute struct {
	key   string
	form  string // as it is written, for errors; a form without "=" is a single word
	kinds []net.Kind
	set   func(t *taskLine, value string) bool // false: the value has the wrong form
	want  string                               // the form of the value, for errors
}

// taskLine is a task whose line is being parsed.
type taskLine struct {
	net.Task
	TaskOptions
	said []string // the keys so far, each at most once
}

// attributes lists them in the order of [Format] and of errors. "of" comes first, and the parser reads it itself, since
// its names may be several words.
var attributes = []attribute{
	{key: "of", form: "of W1,W2", kinds: []net.Kind{net.Composite}},
	{"split", "split=RULE", everyKind, func(t *taskLine, v string) bool { return setRule(&t.Split, v) }, ruleWords},
	{"join", "join=RULE", everyKind, func(t *taskLine, v string) bool { return setRule(&t.Join, v) }, ruleWords},
	{"items", "items=N", atomicOnly, (*taskLine).setItems, manyWords},
	{"cases", "cases=N", compositeOnly, (*taskLine).setCases, casesWords},
	{"policy", "policy=P", withChildren, (*taskLine).setPolicy, "default, continue, incident or quorum:K with K at least 1"},
	{"retry", "retry=N:WAIT", atomicOnly, (*taskLine).setRetry, "the attempts in all and the first wait, like 4:1s"},
	{"timeout", "timeout=T", atomicOnly, (*taskLine).setTimeout, "a duration above zero, like 5s, 1h30m or 2d"},
	{"auto", "auto", atomicOnly, (*taskLine).setAuto, ""},
}

const ruleWords = "and, xor or or"

// most is the maximum number of initial items or cases of a task. They are created by one command, in memory.
const most = 100_000

var (
	manyWords  = fmt.Sprintf("a whole number from 0 to %d", most)
	casesWords = fmt.Sprintf("a whole number from 1 to %d: no command starts a case in a composite later, so one without cases never completes", most)
)

var (
	everyKind     = []net.Kind{net.Atomic, net.Routing, net.Composite}
	withChildren  = []net.Kind{net.Atomic, net.Composite}
	atomicOnly    = []net.Kind{net.Atomic}
	compositeOnly = []net.Kind{net.Composite}
)

// kindWords are the statements that declare each kind, by [net.Kind].
var kindWords = [...]string{net.Atomic: "task", net.Routing: "dummy", net.Composite: "composite"}

// task parses the rest of a task, dummy or composite line.
func (p *parser) task(kind net.Kind) {
	word := kindWords[kind]
	name, ok := p.name("the name of the " + word)
	if !ok {
		return
	}
	t := &taskLine{Task: net.Task{Name: name, Kind: kind, Pos: p.at}, TaskOptions: DefaultOptions()}
	for p.tok != "" {
		if mark(p.tok) {
			p.errorf("unexpected %q; a %s line has one name, then attributes with spaces between them", p.tok, word)
			return
		}
		if !p.attribute(t) || p.errs.full() {
			return
		}
	}
	switch {
	case kind == net.Composite && !slices.Contains(t.said, "of"):
		p.errorf("composite %q runs no workflow; expected \"of\" and the name of one, or several with commas", name)
	case len(t.Of) > 1 && slices.Contains(t.said, "cases"):
		p.errorf("composite %q has several workflows and starts one case of each; cases=N goes with one workflow", name)
	}
	p.work.Def.Tasks = append(p.work.Def.Tasks, t.Task)
	p.work.Tasks = append(p.work.Tasks, t.TaskOptions)
}

// attribute parses one attribute; false if the rest of the line cannot be parsed.
func (p *parser) attribute(t *taskLine) bool {
	word := p.tok
	key, value, assigned := strings.Cut(word, "=")
	p.next()
	i := slices.IndexFunc(attributes, func(a attribute) bool { return a.key == key })
	if i < 0 || !slices.Contains(attributes[i].kinds, t.Kind) {
		p.unknownAttribute(t, key, i >= 0)
		return key != "of" // its names are not attributes
	}
	a := attributes[i]
	if slices.Contains(t.said, key) {
		p.errorf("%s %q says %s twice; expected it once", kindWords[t.Kind], t.Name, quote(key))
		return key != "of"
	}
	t.said = append(t.said, key)
	switch {
	case assigned != strings.Contains(a.form, "="):
		p.errorf("%s is not how %s is written; expected %s", quote(word), key, a.form)
		return key != "of"
	case key == "of":
		names, ok := p.names("the name of a workflow that the composite runs")
		t.Of = names
		return ok
	case !a.set(t, value):
		p.errorf("%s has a bad value; expected %s", quote(word), a.want)
	}
	return true
}

func (p *parser) unknownAttribute(t *taskLine, key string, elsewhere bool) {
	kind := kindWords[t.Kind]
	var keys, forms []string
	for _, a := range attributes {
		if slices.Contains(a.kinds, t.Kind) {
			keys, forms = append(keys, a.key), append(forms, a.form)
		}
	}
	near := spelling.Closest(key, keys)
	switch {
	case elsewhere:
		p.errorf("a %s has no attribute %s; expected %s", kind, quote(key), anyOf(forms))
	case near != "":
		p.errorf("unknown attribute %s of a %s; did you mean %q?", quote(key), kind, near)
	default:
		p.errorf("unknown attribute %s of a %s; expected %s", quote(key), kind, anyOf(forms))
	}
}

func setRule(rule *net.Rule, value string) bool {
	for _, r := range []net.Rule{net.And, net.Xor, net.Or} {
		if r.String() == value {
			*rule = r
			return true
		}
	}
	return false
}

func (t *taskLine) setItems(value string) (ok bool) {
	t.Items, ok = parseNumber(value)
	return ok && t.Items <= most
}

func (t *taskLine) setCases(value string) (ok bool) {
	t.TaskOptions.Cases, ok = parseNumber(value)
	return ok && 1 <= t.TaskOptions.Cases && t.TaskOptions.Cases <= most
}

func (t *taskLine) setPolicy(value string) bool {
	switch value {
	case "default":
		return true
	case "continue":
		t.Policy.Kind = PolicyContinue
		return true
	case "incident":
		t.Policy.Kind = PolicyIncident
		return true
	}
	digits, ok := strings.CutPrefix(value, "quorum:")
	k, number := parseNumber(digits)
	t.Policy = Policy{Kind: PolicyQuorum, K: k}
	return ok && number && k > 0
}

func (t *taskLine) setRetry(value string) bool {
	digits, wait, _ := strings.Cut(value, ":")
	attempts, ok := parseNumber(digits)
	initial, err := ParseDuration(wait)
	t.Retry = &RetrySpec{Attempts: attempts, Initial: initial}
	return ok && attempts > 0 && err == nil
}

func (t *taskLine) setTimeout(value string) bool {
	d, err := ParseDuration(value)
	t.Timeout = d
	return err == nil && d > 0
}

func (t *taskLine) setAuto(string) bool {
	t.Auto = true
	return true
}

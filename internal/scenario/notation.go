package scenario

import (
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// ParseNotation parses all workflows of a text. at is the position of the first line (a zero Line is 1), so that
// positions in a part of a file are those of the file.
//
// The error is a [SyntaxErrors] with all errors; then no workflows are returned. A text without a workflow is an error.
// Names that are declared twice or not at all are not: see [net.Definition.Check] and [Workflow.Problems].
func ParseNotation(at net.Pos, text string) ([]*Workflow, error) {
	p := &parser{at: at}
	p.at.Line = max(p.at.Line, 1)
	if err := mustBeText(p.at, text); err != nil {
		return nil, err
	}
	first := p.at
	for line := range strings.Lines(strings.TrimPrefix(text, byteOrderMark)) {
		p.line(strings.TrimSuffix(line, "\n"))
		p.statement()
		if p.errs.full() {
			break
		}
		p.at.Line++
	}
	p.finish()
	if len(p.errs) == 0 && len(p.done) == 0 {
		p.errs.addf(first, "there is no workflow here; expected \"workflow NAME\"")
	}
	if err := p.errs.asError(); err != nil {
		return nil, err
	}
	return p.done, nil
}

// parser is the state of [ParseNotation]. A statement with an error is skipped up to the end of its line.
type parser struct {
	words
	at      net.Pos // the current line
	work    *Workflow
	regions []Region // the regions of work, whose owners may be declared later
	done    []*Workflow
	errs    SyntaxErrors
}

// statements are the words that begin a line, in the order of errors.
var statements = []string{"workflow", "start", "end", "condition", "task", "dummy", "composite", "flow", "cancel"}

func (p *parser) errorf(format string, args ...any) { p.errs.addf(p.at, format, args...) }

func (p *parser) statement() {
	keyword := p.tok
	if keyword == "" {
		return
	}
	p.next()
	known := slices.Contains(statements, keyword)
	if !known {
		p.errorf("unknown statement %s; %s", quote(keyword), hint(keyword, statements))
	}
	if p.work == nil && keyword != "workflow" {
		if known {
			p.errorf("%q stands before any workflow; expected \"workflow NAME\" first", keyword)
		}
		p.work = &Workflow{Def: &net.Definition{}} // reported once: the following lines are parsed as part of a workflow
	}
	switch keyword {
	case "workflow":
		p.workflow()
	case "start":
		p.role(net.Start, "start")
	case "end":
		p.role(net.End, "end")
	case "condition":
		p.conditions()
	case "task":
		p.task(net.Atomic)
	case "dummy":
		p.task(net.Routing)
	case "composite":
		p.task(net.Composite)
	case "flow":
		p.flow()
	case "cancel":
		p.cancel()
	}
}

func (p *parser) workflow() {
	p.finish()
	p.work = &Workflow{Def: &net.Definition{Pos: p.at}}
	if name, ok := p.name("the name of the workflow"); ok {
		p.work.Def.Name = name
		p.end()
	}
}

// finish adds each region of the current workflow to its owner, the first task with that name, and ends the workflow.
func (p *parser) finish() {
	if p.work == nil {
		return
	}
	def := p.work.Def
	owners := make(map[string]int, len(def.Tasks))
	for i := range def.Tasks {
		if _, ok := owners[def.Tasks[i].Name]; !ok {
			owners[def.Tasks[i].Name] = i
		}
	}
	for _, r := range p.regions {
		if i, ok := owners[r.Owner]; ok {
			def.Tasks[i].Cancels = append(def.Tasks[i].Cancels, r.Members...)
		} else {
			p.work.Missing = append(p.work.Missing, r)
		}
	}
	p.done = append(p.done, p.work)
	p.work, p.regions = nil, nil
}

func (p *parser) role(role net.Role, word string) {
	name, ok := p.name("the name of the " + word + " condition")
	if !ok || !p.end() {
		return
	}
	p.condition(name, role)
}

func (p *parser) condition(name string, role net.Role) {
	p.work.Def.Conditions = append(p.work.Def.Conditions, net.Condition{Name: name, Role: role, Pos: p.at})
}

// conditions parses "condition c1 c2". Commas between the names are allowed, as in flows.
func (p *parser) conditions() {
	for {
		name, ok := p.name("the name of a condition")
		if !ok {
			return
		}
		p.condition(name, net.Inner)
		if !p.take(",") && p.tok == "" {
			return
		}
	}
}

func (p *parser) flow() {
	from, ok := p.name("the task or condition that the flow comes from")
	if !ok || !p.expect("->", "the source of a flow") {
		return
	}
	for {
		to, ok := p.name("the task or condition that the flow goes to")
		if !ok {
			return
		}
		p.work.Def.Flows = append(p.work.Def.Flows, net.Flow{From: from, To: to, Pos: p.at})
		if !p.take(",") {
			p.end()
			return
		}
	}
}

func (p *parser) cancel() {
	owner, ok := p.name("the task that cancels")
	if !ok || !p.expect(":", "the task that cancels") {
		return
	}
	r := Region{Owner: owner, Pos: p.at}
	for {
		member, ok := p.member()
		if !ok {
			return
		}
		r.Members = append(r.Members, member)
		if !p.take(",") {
			break
		}
	}
	if p.end() {
		p.regions = append(p.regions, r)
	}
}

// member parses a task, a condition, or an implicit condition as "A->B".
func (p *parser) member() (string, bool) {
	const what = "a task or condition of the region"
	name, ok := p.name(what)
	if !ok || !p.take("->") {
		return name, ok
	}
	to, ok := p.name(what)
	return net.ImplicitName(name, to), ok
}

// name parses a name; what describes it in errors.
func (p *parser) name(what string) (string, bool) {
	name := p.tok
	switch {
	case IsName(name):
		p.next()
		return name, true
	case name == "":
		p.errorf("the line ends too soon; expected %s", what)
	case mark(name):
		p.errorf("unexpected %q; expected %s", name, what)
	default:
		p.errorf("%s is not a name; expected %s: a letter or _, then letters, digits, _ and -", quote(name), what)
	}
	return "", false
}

// names parses a list with commas and at least one name.
func (p *parser) names(what string) ([]string, bool) {
	var list []string
	for {
		name, ok := p.name(what)
		if !ok {
			return nil, false
		}
		list = append(list, name)
		if !p.take(",") {
			return list, true
		}
	}
}

func (p *parser) expect(tok, after string) bool {
	if p.take(tok) {
		return true
	}
	if p.tok == "" {
		p.errorf("the line ends too soon; expected %q after %s", tok, after)
	} else {
		p.errorf("unexpected %s; expected %q after %s", quote(p.tok), tok, after)
	}
	return false
}

func (p *parser) end() bool {
	if p.tok == "" {
		return true
	}
	p.errorf("unexpected %s; expected the end of the line", quote(p.tok))
	return false
}

package scenario

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Verb is the kind of a command.
type Verb string

// The verbs, as in a scenario file.
const (
	VerbDefine       Verb = "define"
	VerbCheck        Verb = "check"
	VerbStart        Verb = "start"
	VerbItemStart    Verb = "item start"
	VerbItemComplete Verb = "item complete"
	VerbItemFail     Verb = "item fail"
	VerbItemCancel   Verb = "item cancel"
	VerbItemReset    Verb = "item reset"
	VerbItemRetry    Verb = "item retry"
	VerbItemSkip     Verb = "item skip" // complete an item without its work
	VerbItemGiveUp   Verb = "item give-up"
	VerbItemNew      Verb = "item new"
	VerbDo           Verb = "do" // start and complete an item
	VerbCaseCancel   Verb = "case cancel"
	VerbCaseMove     Verb = "case move"
	VerbCaseForce    Verb = "case force"
	VerbCaseSuspend  Verb = "case suspend"
	VerbCaseResume   Verb = "case resume" // continue a failed case where it failed
	VerbAdvance      Verb = "advance"
	VerbCrash        Verb = "crash"
	VerbShow         Verb = "show"
)

// Subject is what a show command shows.
type Subject string

// The subjects, as in a scenario file.
const (
	SubjectCase    Subject = "case"
	SubjectTasks   Subject = "tasks"
	SubjectMarking Subject = "marking"
	SubjectItems   Subject = "items"
	SubjectCases   Subject = "cases"
	SubjectJobs    Subject = "jobs"
	SubjectEnabled Subject = "enabled"

	SubjectIncidents Subject = "incidents"
)

// DefaultCase is the name of a root case for which start has no name.
const DefaultCase = "case"

// Action is a parsed command. The fields that a verb does not use are zero.
type Action struct {
	Verb     Verb
	Workflow string        // check, start
	Verbose  bool          // check -v: with witnesses
	Name     string        // start: of the root case, [DefaultCase] if none was given
	Item     ItemRef       // do, and item except new
	Task     string        // item new
	From     string        // case move and force: a condition or a task
	Target   string        // likewise
	Duration time.Duration // advance; never negative
	Subject  Subject       // show

	// To are the targets of the split of the item's task, for do and item except new. If it is nil, the split decides.
	// An empty list, from "to=" alone, names no flow, which is a different case. Names are not checked.
	To []string

	Case CasePath // of any command; zero for the case that was started last
}

// Action parses the command. The error is a [*SyntaxError] with the position of the command.
func (c *Command) Action() (Action, error) {
	a, err := ParseAction(c.Words, c.Args)
	if err == nil && a.Verb != VerbDefine && slices.ContainsFunc(c.Input, notComment) {
		err = syntaxf("%s takes no input; expected %q on the next line", a.Verb, separator)
	}
	if bad := (*SyntaxError)(nil); errors.As(err, &bad) {
		return Action{}, &SyntaxError{File: c.Pos.File, Line: c.Pos.Line, Text: bad.Text}
	}
	return a, err
}

func notComment(line string) bool {
	return !blank(line) && !strings.HasPrefix(strings.TrimSpace(line), "#")
}

// ParseAction parses the words and arguments of a command. The error is a [*SyntaxError] without a position: an unknown
// command, a wrong number of words, a word of the wrong form, or an argument that the command does not take. Names are
// not checked.
func ParseAction(words []string, args []Arg) (Action, error) {
	if len(words) == 0 {
		return Action{}, syntaxf("the command is missing; expected %s", anyOf(commandNames))
	}
	c, ok := commands[words[0]]
	if !ok {
		return Action{}, syntaxf("unknown command %s; %s", quote(words[0]), hint(words[0], commandNames))
	}
	var a Action
	switch err := c.parse(&a, words[1:]); {
	case errors.Is(err, errUsage):
		return Action{}, syntaxf("%s is not how it is written; expected %s", quote(strings.Join(words, " ")), c.usage)
	case err != nil:
		return Action{}, err
	}
	if err := a.arguments(args); err != nil {
		return Action{}, err
	}
	return a, nil
}

func (a *Action) arguments(args []Arg) error {
	for i, arg := range args {
		if slices.ContainsFunc(args[:i], func(b Arg) bool { return b.Key == arg.Key }) {
			return syntaxf("%s= is given twice; expected it once", arg.Key)
		}
		switch {
		case arg.Key == "case":
			path, err := ParseCasePath(arg.Value)
			if err != nil {
				return err
			}
			a.Case = path
		case arg.Key == "to" && a.Item.Task != "":
			a.To = []string{}
			if arg.Value != "" {
				a.To = strings.Split(arg.Value, ",")
			}
		default:
			return syntaxf("%s takes no argument %s; expected %s", a.Verb, quote(arg.Key+"="), a.takes())
		}
	}
	return nil
}

// takes lists the arguments that the command takes.
func (a *Action) takes() string {
	if a.Item.Task != "" {
		return "to= or case="
	}
	return "case="
}

// errUsage is the error of parse for a wrong number or order of words.
var errUsage = errors.New("usage")

// command is a row of the table of commands.
type command struct {
	usage string
	parse func(a *Action, words []string) error // words without those of the command itself
}

// commandNames are the keys of commands, in the order of errors.
var commandNames = []string{"define", "check", "start", "item", "do", "case", "advance", "crash", "show"}

var commands = map[string]command{
	"define":  {"define, and a net below it", alone(VerbDefine)},
	"check":   {"check WORKFLOW [-v]", (*Action).parseCheck},
	"start":   {"start WORKFLOW [as NAME]", (*Action).parseStart},
	"item":    {"item start|complete|fail|cancel|reset|retry|skip|give-up ITEM [to=T1,T2], or item new TASK", (*Action).parseItem},
	"do":      {"do ITEM [to=T1,T2]", (*Action).parseDo},
	"case":    {"case cancel|suspend|resume, or case move|force FROM TO", (*Action).parseCase},
	"advance": {"advance DURATION", (*Action).parseAdvance},
	"crash":   {"crash", alone(VerbCrash)},
	"show":    {"show case|tasks|marking|items|cases|jobs|enabled|incidents", (*Action).parseShow},
}

// Usages returns the usage of each command, define first.
func Usages() []string {
	usages := make([]string, len(commandNames))
	for i, name := range commandNames {
		usages[i] = commands[name].usage
	}
	return usages
}

func alone(v Verb) func(*Action, []string) error {
	return func(a *Action, words []string) error {
		a.Verb = v
		if len(words) > 0 {
			return errUsage
		}
		return nil
	}
}

func (a *Action) parseCheck(words []string) error {
	a.Verb = VerbCheck
	if i := slices.Index(words, "-v"); i >= 0 {
		a.Verbose = true
		words = slices.Delete(slices.Clone(words), i, i+1)
	}
	if len(words) != 1 || !IsName(words[0]) {
		return errUsage
	}
	a.Workflow = words[0]
	return nil
}

func (a *Action) parseStart(words []string) error {
	a.Verb, a.Name = VerbStart, DefaultCase
	switch {
	case len(words) == 3 && words[1] == "as":
		a.Name = words[2]
	case len(words) != 1:
		return errUsage
	}
	if !IsName(words[0]) || !IsName(a.Name) {
		return errUsage
	}
	a.Workflow = words[0]
	return nil
}

func (a *Action) parseItem(words []string) (err error) {
	if len(words) != 2 {
		return errUsage
	}
	switch a.Verb = Verb("item " + words[0]); a.Verb {
	case VerbItemStart, VerbItemComplete, VerbItemFail, VerbItemCancel, VerbItemReset, VerbItemRetry, VerbItemSkip, VerbItemGiveUp:
		a.Item, err = ParseItemRef(words[1])
		return err
	case VerbItemNew:
		if !IsName(words[1]) {
			return errUsage
		}
		a.Task = words[1]
		return nil
	}
	return errUsage
}

func (a *Action) parseDo(words []string) (err error) {
	a.Verb = VerbDo
	if len(words) != 1 {
		return errUsage
	}
	a.Item, err = ParseItemRef(words[0])
	return err
}

func (a *Action) parseCase(words []string) error {
	if len(words) == 3 && (words[0] == "move" || words[0] == "force") {
		a.Verb, a.From, a.Target = Verb("case "+words[0]), words[1], words[2]
		return nil
	}
	if len(words) != 1 {
		return errUsage
	}
	switch a.Verb = Verb("case " + words[0]); a.Verb {
	case VerbCaseCancel, VerbCaseSuspend, VerbCaseResume:
		return nil
	}
	return errUsage
}

func (a *Action) parseAdvance(words []string) (err error) {
	a.Verb = VerbAdvance
	if len(words) != 1 {
		return errUsage
	}
	a.Duration, err = ParseDuration(words[0])
	return err
}

func (a *Action) parseShow(words []string) error {
	a.Verb = VerbShow
	if len(words) != 1 {
		return errUsage
	}
	switch a.Subject = Subject(words[0]); a.Subject {
	case SubjectCase, SubjectTasks, SubjectMarking, SubjectItems, SubjectCases, SubjectJobs, SubjectEnabled, SubjectIncidents:
		return nil
	}
	return errUsage
}

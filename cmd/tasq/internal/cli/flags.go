package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/workflow"
)

// normalize gives a long flag with one dash, as in the tools of Go, a second one: -db becomes --db; it would otherwise
// be parsed as -d b. Arguments after "--" or "demo" are not changed.
func (a *app) normalize(root *cobra.Command, args []string) []string {
	long := make(map[string]bool)
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { long[f.Name] = true })
		}
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(root)
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" || arg == "demo" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && len(name) > 1 && long[name] {
			out[i] = "-" + arg
		}
	}
	return out
}

// flagError suggests the flag that a wrong one probably means.
func flagError(cmd *cobra.Command, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		value := printable.Line(printable.Brief([]byte(invalid.GetValue()), 40))
		return usagef("--%s %s: %w", invalid.GetFlag().Name, value, wanted(invalid))
	}
	unknown := (*pflag.NotExistError)(nil)
	if !errors.As(err, &unknown) {
		return usage(err)
	}
	name := "--" + unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		name = "-" + short
	}
	var known []string
	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	}
	slices.Sort(known)
	meant := spelling.Hint("--"+strings.TrimLeft(name, "-"), slices.Compact(known))
	return usagef("%s has no flag %s; %s", cmd.CommandPath(), name, meant)
}

// emptyMeans are the flags for which an empty text is valid, or which reject it themselves: "" is the default queue,
// and a reason is optional.
var emptyMeans = []string{"queue", "reason", "zone", "once-per", "of-queue"}

// fileNames are the flags with file names, which may be any bytes.
var fileNames = []string{"db", "net", "to", "verdicts", "witness", "users", "tls-key", "tls-cert"}

// allText refuses a flag whose value is not UTF-8, which databases cannot store.
func allText(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && !utf8.ValidString(f.Value.String()) && !slices.Contains(fileNames, f.Name) {
			err = usagef("--%s %q is not UTF-8", f.Name, f.Value)
		}
	})
	return err
}

// noneEmpty refuses a flag with an empty value, such as that of an unset variable in a script: it would select
// everything, and with --all act on everything.
func noneEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && !slices.Contains(emptyMeans, f.Name) {
			err = usagef("--%s is empty: give a value, or leave it out", f.Name)
		}
	})
	return err
}

// wanted describes the value that a flag takes, if the flag has a type of the standard library: the error of that type
// is about the parsing function.
func wanted(invalid *pflag.InvalidValueError) error {
	err := errors.Unwrap(invalid)
	switch kind := invalid.GetFlag().Value.Type(); {
	case (kind == "int" || kind == "int64") && errors.Is(err, strconv.ErrRange):
		return errors.New("the number is too large")
	case kind == "int", kind == "int64":
		return errors.New("write a whole number")
	case kind == "float64" && errors.Is(err, strconv.ErrRange):
		return errors.New("the number is too large")
	case kind == "float64":
		return errors.New("write a number, such as 1.5")
	case kind == "bool":
		return errors.New("write true or false, or the flag alone for true")
	case kind == "duration":
		return errors.New("write it as 500ms, 10s or 5m")
	case kind == "durationSlice":
		return errors.New("write the waits with commas between them: 10s,1m,5m")
	}
	return err
}

func (a *app) checkOutput(cmd *cobra.Command) error {
	if forms := []string{"table", "csv", "json"}; !slices.Contains(forms, a.output) {
		return usagef("-o %q: %s", a.output, spelling.Hint(a.output, forms))
	}
	if a.output == "csv" && slices.Contains(withoutTable, cmd.Name()) && cmd.Parent() == cmd.Root() {
		return usagef("%s prints a text without columns, so -o csv does not apply; -o json is for programs", cmd.CommandPath())
	}
	return nil
}

// withoutTable are the commands that read and print a text, or objects with -o json.
var withoutTable = []string{"show", "history", "why", "way", "doctor"}

// exactly is like cobra.ExactArgs, but the error names the missing argument.
func exactly(names ...string) cobra.PositionalArgs { return between(len(names), names...) }

// between requires at least the given number of the named arguments.
func between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s needs %s; see %s -h", cmd.CommandPath(), names[len(args)], cmd.CommandPath())
		case len(args) > len(names) && len(names) == 0:
			return usagef("%s takes no arguments; got %q", cmd.CommandPath(), args[0])
		case len(args) > len(names):
			return usagef("%s takes %s; unexpected argument %q", cmd.CommandPath(), strings.Join(names, " and "), args[len(names)])
		}
		return nil
	}
}

// words is a flag that takes several words, separated by commas or by repeating the flag.
type words[T any] struct {
	list  *[]T
	parse func(string) (T, error)
	known []string
}

func (w words[T]) String() string { return "" }
func (w words[T]) Type() string   { return "state" }

func (w words[T]) Set(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		v, err := w.parse(word)
		if err != nil {
			return fmt.Errorf("unknown value %q: %s", word, spelling.Hint(word, w.known))
		}
		*w.list = append(*w.list, v)
	}
	return nil
}

// age is a flag that takes a duration in Go's syntax, or whole days as in "3d".
type age time.Duration

func (a *age) String() string { return "" }
func (a *age) Type() string   { return "age" }

func (a *age) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(n) * 24 * time.Hour
		if err == nil && d/(24*time.Hour) != time.Duration(n) {
			err = errors.New("too long")
		}
	}
	if err != nil || d < 0 {
		return errors.New("write it as 90s, 5m, 2h or 3d")
	}
	*a = age(d)
	return nil
}

// before returns the time that is the age before now; the zero time for the zero age.
func (a age) before(now time.Time) time.Time {
	if a == 0 {
		return time.Time{}
	}
	return now.Add(-time.Duration(a))
}

// bound is a flag that bounds a period: it takes an age, or a time in RFC 3339.
type bound struct {
	ago age
	at  time.Time
}

func (b *bound) String() string { return "" }
func (b *bound) Type() string   { return "age" }

func (b *bound) Set(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err == nil {
		*b = bound{at: t}
		return nil
	}
	var ago age
	if err := ago.Set(s); err != nil {
		return errors.New("write it as 90s, 5m, 2h or 3d, or as a time such as 2026-11-22T12:00:00Z")
	}
	*b = bound{ago: ago}
	return nil
}

// time returns the time of the bound; the zero time if the flag is not set.
func (b bound) time(now time.Time) time.Time {
	if !b.at.IsZero() {
		return b.at
	}
	return b.ago.before(now)
}

// age returns how long ago the bound is; 0 if the flag is not set.
func (b bound) age(now time.Time) time.Duration {
	if b == (bound{}) {
		return 0
	}
	return max(0, now.Sub(b.time(now)))
}

// data is a flag that takes JSON: literally, from a file as @FILE, or from standard input as "-".
type data struct {
	a    *app
	json json.RawMessage
}

func (d *data) String() string { return "" }
func (d *data) Type() string   { return "JSON" }

func (d *data) Set(s string) error {
	text := []byte(s)
	var err error
	if s == "-" {
		text, err = io.ReadAll(d.a.stdin)
	} else if file, ok := strings.CutPrefix(s, "@"); ok {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return err
	}
	if err := checkJSON(text); err != nil {
		return err
	}
	d.json = text
	return nil
}

// checkJSON returns an error with the position of a syntax error in JSON.
func checkJSON(text []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return domain.CheckJSON(text)
	}
	if strings.Contains(syntax.Error(), "unexpected end") {
		line, column := place(text, len(text))
		return fmt.Errorf("invalid JSON: unexpected end at line %d column %d", line, column)
	}
	at := max(0, min(int(syntax.Offset), len(text))-1)
	line, column := place(text, at)
	rest, _, _ := bytes.Cut(text[at:], []byte("\n"))
	return fmt.Errorf("invalid JSON at line %d column %d: %s: %w; check your shell's quotes", line, column,
		printable.Line(printable.Brief(rest, 20)), syntax)
}

// place returns the line and column of a byte, both from 1.
func place(text []byte, at int) (line, column int) {
	before := text[:at]
	return 1 + bytes.Count(before, []byte("\n")), at - bytes.LastIndexByte(before, '\n')
}

// changed lists the flags that the user has set.
func changed(cmd *cobra.Command) []string {
	var all []string
	cmd.Flags().Visit(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// labels is a flag that collects name=value.
type labels map[string]string

// Set implements [pflag.Value], as do String and Type.
func (l *labels) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return errors.New("write a name and a value, as in customer=ada")
	}
	if err := workflow.CheckLabelName(name); err != nil {
		return err
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("the value %q is not UTF-8", value)
	}
	if *l == nil {
		*l = make(labels)
	}
	if before, twice := (*l)[name]; twice && before != value {
		return fmt.Errorf("label %s has two values; give one", name)
	}
	(*l)[name] = value
	return nil
}

func (l *labels) String() string { return "" }

func (l *labels) Type() string { return "name=value" }

// throttle is a flag that takes a number of starts and a period, as in 10/1h.
type throttle struct{ c *workflow.Command }

// Set implements [pflag.Value], as do String and Type.
func (t throttle) Set(text string) (err error) {
	n, window, _ := strings.Cut(text, "/")
	var length age
	if t.c.Throttle, err = strconv.Atoi(n); err != nil || length.Set(window) != nil {
		return errors.New("write a number and a window, as in 1/30s or 10/1h")
	}
	t.c.Window = time.Duration(length)
	return workflow.Throttle(t.c.Throttle, t.c.Window).Apply(t.c)
}

func (t throttle) String() string { return "" }

func (t throttle) Type() string { return "n/window" }

package eventlog_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// schema is the part of JSON Schema that the one of OCEL 2.0 uses.
type schema struct {
	Type       string
	Properties map[string]schema
	Items      *schema
	Required   []string
	Format     string
}

func (s schema) check(v any, at string) error {
	switch s.Type {
	case "object":
		o, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object", at)
		}
		for _, name := range s.Required {
			if _, ok := o[name]; !ok {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
		for name, p := range s.Properties {
			if value, ok := o[name]; ok {
				if err := p.check(value, at+"."+name); err != nil {
					return err
				}
			}
		}
	case "array":
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s is no array", at)
		}
		for i, e := range list {
			if err := s.Items.check(e, at+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case "string":
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s is no string", at)
		}
		if _, err := time.Parse(time.RFC3339Nano, text); s.Format == "date-time" && err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	default:
		return fmt.Errorf("%s: the schema has the type %q", at, s.Type)
	}
	return nil
}

type attribute struct{ Name, Value, Time, Type string }

type relation struct{ ObjectID, Qualifier string }

type row struct {
	ID, Type, Time, Name string
	Attributes           []attribute
	Relationships        []relation
}

func (r row) value(name string) string {
	i := slices.IndexFunc(r.Attributes, func(a attribute) bool { return a.Name == name })
	if i < 0 {
		return ""
	}
	return r.Attributes[i].Value
}

type ocelLog struct{ EventTypes, ObjectTypes, Events, Objects []row }

// checkOCEL checks a log against the published schema, and what the specification says beside it: ids are unique, types and their attributes are
// declared, and each relation leads to an object.
func checkOCEL(t *testing.T, text []byte) (log ocelLog) {
	t.Helper()
	var published schema
	data, err := os.ReadFile("testdata/ocel20-schema.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &published))
	var v any
	require.NoError(t, json.Unmarshal(text, &v), string(text))
	require.NoError(t, published.check(v, "log"))
	require.Error(t, published.check(map[string]any{"events": []any{}}, "log"), "the schema asks for something")
	require.NoError(t, json.Unmarshal(text, &log))
	ids := make(map[string]bool)
	objects := make(map[string]bool)
	declared := func(r row, types []row) {
		i := slices.IndexFunc(types, func(t row) bool { return t.Name == r.Type })
		require.GreaterOrEqual(t, i, 0, "type %s", r.Type)
		for _, a := range r.Attributes {
			require.True(t, slices.ContainsFunc(types[i].Attributes, func(d attribute) bool { return d.Name == a.Name }), "%s of %s", a.Name, r.Type)
		}
		require.False(t, ids[r.ID], "%s is twice there", r.ID)
		ids[r.ID] = true
	}
	for _, o := range log.Objects {
		declared(o, log.ObjectTypes)
		objects[o.ID] = true
	}
	for _, e := range log.Events {
		declared(e, log.EventTypes)
		require.NotEmpty(t, e.Relationships)
	}
	for _, r := range slices.Concat(log.Objects, log.Events) {
		for _, to := range r.Relationships {
			require.True(t, objects[to.ObjectID], "%s has %s %s", r.ID, to.Qualifier, to.ObjectID)
		}
	}
	return log
}

type element struct {
	name     string
	attrs    map[string]string
	children []*element
}

func (e *element) value(key string) string {
	for _, c := range e.children {
		if c.attrs["key"] == key {
			return c.attrs["value"]
		}
	}
	return ""
}

func (e *element) all(name string) (found []*element) {
	for _, c := range e.children {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

func parse(text []byte) (*element, error) {
	d := xml.NewDecoder(strings.NewReader(string(text)))
	stack := []*element{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return stack[0].children[0], nil
		}
		if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: make(map[string]string)}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			top.children = append(top.children, e)
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if strings.TrimSpace(string(token)) != "" {
				return nil, fmt.Errorf("%s has text", top.name)
			}
		}
	}
}

var (
	xmlName   = regexp.MustCompile(`^[A-Za-z_:][-A-Za-z0-9._:]*$`)
	ncName    = regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9._]*$`)
	xmlTime   = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
	anything  = regexp.MustCompile(`^(?s:.*)$`)
	decimal   = regexp.MustCompile(`^\d+(\.\d+)?$`)
	integer   = regexp.MustCompile(`^-?\d+$`)
	something = regexp.MustCompile(`.`)
)

// xesRule is what the XML schema of IEEE 1849-2016 (http://www.xes-standard.org/) says of an element: its attributes, of which those with a "!"
// are required, and its children in their order; "attributes" stands for those of the types of values.
type xesRule struct {
	attrs    map[string]*regexp.Regexp
	children []string
}

var (
	values   = []string{"string", "date", "int", "float", "boolean", "id"}
	xesRules = map[string]xesRule{
		"log":        {map[string]*regexp.Regexp{"!xes.version": decimal, "xes.features": anything}, strings.Fields("extension global classifier attributes trace event")},
		"extension":  {map[string]*regexp.Regexp{"!name": ncName, "!prefix": ncName, "!uri": something}, nil},
		"global":     {map[string]*regexp.Regexp{"scope": ncName}, []string{"attributes"}},
		"classifier": {map[string]*regexp.Regexp{"!name": ncName, "scope": ncName, "!keys": something}, nil},
		"trace":      {nil, strings.Fields("attributes event")},
		"event":      {nil, []string{"attributes"}},
		"string":     {map[string]*regexp.Regexp{"!key": xmlName, "!value": anything}, []string{"attributes"}},
		"date":       {map[string]*regexp.Regexp{"!key": xmlName, "!value": xmlTime}, []string{"attributes"}},
		"int":        {map[string]*regexp.Regexp{"!key": xmlName, "!value": integer}, []string{"attributes"}},
		"id":         {map[string]*regexp.Regexp{"!key": xmlName, "!value": something}, []string{"attributes"}},
	}
)

func (e *element) check() error {
	rule, ok := xesRules[e.name]
	if !ok {
		return fmt.Errorf("element %s", e.name)
	}
	for name, value := range e.attrs {
		takes := rule.attrs[name]
		if takes == nil {
			takes = rule.attrs["!"+name]
		}
		if takes == nil || !takes.MatchString(value) {
			return fmt.Errorf("%s %s=%q", e.name, name, value)
		}
	}
	for name := range rule.attrs {
		if required, is := strings.CutPrefix(name, "!"); is {
			if _, there := e.attrs[required]; !there {
				return fmt.Errorf("%s without %s", e.name, required)
			}
		}
	}
	at := 0
	for _, c := range e.children {
		group := c.name
		if slices.Contains(values, group) {
			group = "attributes"
		}
		next := slices.Index(rule.children[at:], group)
		if next < 0 {
			return fmt.Errorf("%s in %s: it is not a child there, or too late", c.name, e.name)
		}
		at += next
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// checkXES checks a log against the rules of the published schema, and that each key of a classifier, and of a global, is in each element.
func checkXES(t *testing.T, text []byte) *element {
	t.Helper()
	log, err := parse(text)
	require.NoError(t, err, string(text))
	require.Equal(t, "log", log.name)
	require.NotContains(t, log.attrs, "xmlns", "the schema has no target namespace")
	require.NoError(t, log.check(), string(text))
	for _, trace := range log.all("trace") {
		require.NotEmpty(t, trace.value("concept:name"))
		for _, e := range trace.all("event") {
			require.NotEmpty(t, e.value("concept:name"))
			require.NotEmpty(t, e.value("time:timestamp"))
			require.Contains(t, strings.Fields("schedule assign withdraw reassign start suspend resume pi_abort ate_abort complete autoskip manualskip unknown"),
				e.value("lifecycle:transition"))
		}
	}
	return log
}

// The checks find what is wrong.
func TestTheRulesOfXES(t *testing.T) {
	for _, text := range []string{
		`<log xes.version="1"><trace/><extension name="A" prefix="a" uri="u"/></log>`, `<log/>`, `<log xes.version="1"><event><string key="a b" value=""/></event></log>`,
		`<log xes.version="1"><trace><event/><string key="a" value=""/></trace></log>`, `<log xes.version="1"><string value=""/></log>`,
		`<log xes.version="1"><date key="a" value="today"/></log>`, `<log xes.version="1"><classifier name="A B" keys="a"/></log>`,
	} {
		log, err := parse([]byte(text))
		require.NoError(t, err)
		require.Error(t, log.check(), text)
	}
}

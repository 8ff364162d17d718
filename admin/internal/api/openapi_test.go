package api

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/startlines"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/eventlog"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

var update = flag.Bool("update", false, "write openapi.json anew")

type object = map[string]any

// schemas makes schemas of Go types, as encoding/json writes them.
type schemas struct{ all object }

func (s *schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t.Kind() == reflect.Array:
		return object{"type": "string", "format": "uuid"}
	case t.Kind() == reflect.Struct && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.String, reflect.Uint8:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Struct:
		return s.ref(t)
	}
	panic(t.String())
}

func (s *schemas) ref(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if t.PkgPath() == reflect.TypeFor[why.Answer]().PkgPath() {
		name = "Why" + name
	}
	if t.PkgPath() == reflect.TypeFor[bulk.Info]().PkgPath() {
		name = "Bulk" + name
	}
	if t.PkgPath() == reflect.TypeFor[schedules.Description]().PkgPath() {
		name = "Schedule" + name
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	if s.all[name] != nil {
		return ref
	}
	properties, required := object{}, []string{}
	s.all[name] = object{"type": "object", "properties": properties, "additionalProperties": false}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "-" || f.Anonymous || t == reflect.TypeFor[workflow.Result]() && tag == "preview" { // the API has no command "dry-run"
			continue
		}
		properties[tag] = s.of(f.Type)
		if t == reflect.TypeFor[commandBody]() && tag == "reason" { // see withReason
			properties[tag] = object{"oneOf": []any{object{"type": "string"}, s.of(f.Type)}}
		}
		if d := described[name+"."+tag]; d != "" {
			properties[tag].(object)["description"] = d
		}
		if !strings.Contains(options, "omit") {
			required = append(required, tag)
		}
	}
	slices.Sort(required)
	s.all[name].(object)["required"] = required
	return ref
}

// described are the descriptions of fields.
var described = map[string]string{
	"WhyWait.text": "all of it in words, except for the commands",
	"WhyWait.commands": "the commands of tasq by which a person ends an incident, that which retries it first, or the wait of a case in which nothing is under way; " +
		"what the text says that can be done is in the same order",
}

// answers are the types of what the paths answer with; a list has rows of it.
var answers = map[string]struct {
	of    reflect.Type
	lists bool
}{
	"POST /api/v1/cases": {reflect.TypeFor[startlines.Starts](), false}, "/api/v1/cases": {reflect.TypeFor[record.Case](), true}, "/api/v1/cases/{id}": {reflect.TypeFor[record.OneCase](), false},
	"/api/v1/cases/{id}/differences": {reflect.TypeFor[store.Difference](), true}, "/api/v1/cases/{id}/film": {reflect.TypeFor[store.Frame](), true},
	"/api/v1/cases/{id}/way": {reflect.TypeFor[why.Way](), false},
	"/api/v1/cases/{id}/why": {reflect.TypeFor[why.Answer](), false}, "/api/v1/cases/{id}/history": {reflect.TypeFor[record.Change](), true},
	"/api/v1/items": {reflect.TypeFor[record.Item](), true}, "/api/v1/items/{id}": {reflect.TypeFor[record.Item](), false},
	"/api/v1/jobs": {reflect.TypeFor[record.Job](), true}, "/api/v1/jobs/{id}": {reflect.TypeFor[record.Job](), false},
	"/api/v1/steps": {reflect.TypeFor[record.Step](), true}, "/api/v1/events": {reflect.TypeFor[record.Event](), true},
	"/api/v1/incidents": {reflect.TypeFor[record.Incident](), true}, "/api/v1/definitions": {reflect.TypeFor[record.Definition](), true},
	"/api/v1/failures": {reflect.TypeFor[record.Failures](), true}, "/api/v1/audit": {reflect.TypeFor[record.Act](), true}, "/api/v1/counts": {reflect.TypeFor[record.Count](), true}, "/api/v1/commands": {reflect.TypeFor[workflow.Result](), false},
	"/api/v1/engines": {reflect.TypeFor[record.Engine](), true},
	"/api/v1/doctor":  {reflect.TypeFor[why.StrandedCase](), true}, "/api/v1/stats": {reflect.TypeFor[rates](), false},
	"/api/v1/database": {reflect.TypeFor[source.Database](), false},
	"/api/v1/queues":   {reflect.TypeFor[source.Queue](), true}, "/api/v1/limits": {reflect.TypeFor[workflow.LimitInfo](), true},
	"POST /api/v1/schedules": {reflect.TypeFor[schedules.Description](), false},
	"/api/v1/schedules":      {reflect.TypeFor[schedules.Description](), true}, "/api/v1/schedules/{name}": {reflect.TypeFor[schedules.Description](), false},
	"/api/v1/bulk": {reflect.TypeFor[bulk.Info](), true}, "POST /api/v1/bulk": {reflect.TypeFor[bulkStarted](), false},
	"/api/v1/bulk/{id}": {reflect.TypeFor[bulk.Info](), false},
	"/api/v1/search":    {reflect.TypeFor[store.Match](), true},
	exportPath:          {}, "/api/v1/stream": {reflect.TypeFor[entryRow](), false}, "/api/v1/openapi.json": {},
}

const exportPath = "/api/v1/export"

// params are the parameters of queries, with what they take.
var params = map[string]struct{ kind, takes string }{
	"after": {"integer", "a position of the journal; what comes after it is answered"}, "at": {"integer", "a position of the journal: the state there"},
	"holder":  {"string", "started work items that this actor holds"},
	"attempt": {"integer", "work items of this attempt, or of a later one"}, "case": {"uuid", "a root case with all below it, or one child case"},
	"before": {"integer", "a position of the journal; what comes before it is answered"}, "by": {"string", "the actor; of failures, by what they are grouped: code, task or workflow; of statistics, too: workflow (cases), task or hour"},
	"command": {"string", "the first words of a command, as in start, item or item complete"}, "until": {"integer", "a position of the journal; what comes up to it is answered"},
	"code": {"string", "the code of a failure, or of the reason of a cancellation; of incidents, empty is none"}, "cursor": {"uuid", "next of the page before"},
	"dryRun": {"boolean", "check each line as a start does, count it as wouldStart in place of started, and start nothing"},
	"due":    {"string", "due within this time from now, as in 0s, 5m or 2h"}, "fingerprint": {"string", "the fingerprint of a definition"},
	"from":   {"integer", "a position of the journal: the state there is the first one"},
	"format": {"string", "csv answers with all rows as comma-separated values; the header Accept with text/csv or application/x-ndjson does, too"},
	"hourly": {"boolean", "by hour in place of by task"}, "cases": {"boolean", "cases by workflow, in place of work items by task"}, "item": {"uuid", "of this work item"}, "job": {"uuid", "of this job"},
	"key": {"string", "the business key"}, "kind": {"string", "the kind"}, "label": {"label", "name=value; of several, each must hold"},
	"limit": {"integer", "how many at most"}, "name": {"string", "the name"}, "newer": {"string", "created at most so long ago, as in 90s, 5m or 3d, or since a time, as in 2026-11-22T12:00:00Z"},
	"newest": {"boolean", "the newest first"}, "older": {"string", "created at least so long ago, as in 90s, 5m or 3d, or before a time, as in 2026-11-22T12:00:00Z"},
	"q":       {"string", "an id, the last four characters of one or more, a business key, a label as in customer=ada, an idempotency key, or the beginning of the name of a workflow"},
	"payload": {"string", "a text in an input, an output or a failure; the newest 100000 rows are searched, for half a second at most: cut says that next goes on from there"},
	"queue":   {"string", "the queue; empty is the one without a name"}, "root": {"uuid", "a root case"},
	"root-only": {"boolean", "no child cases"}, "suspended": {"boolean", "only those that are suspended"}, "state": {"state", "a state; of several, separated by commas, one must hold"},
	"target": {"string", "what a step is about: the workflow it calls, the event or topic it waits for"}, "task": {"string", "the task; of incidents, empty is none"},
	"unread": {"boolean", "only those that no step has taken"}, "workflow": {"string", "the workflow"},
}

// states are the words of the parameter state.
var states = map[string][]string{
	"/api/v1/cases": words(state.ParseCaseState), exportPath: words(state.ParseCaseState), "/api/v1/items": words(workitem.ParseState), "/api/v1/jobs": words(state.ParseJobState),
	"/api/v1/steps": words(workitem.ParseStepState),
}

// kinds are the words of the parameter kind, where there is a list of them.
var kinds = map[string][]string{"/api/v1/jobs": query.JobKinds, "/api/v1/incidents": state.IncidentKinds}

// words are those of a type of states.
func words[S interface {
	~uint8
	fmt.Stringer
}](parse func(string) (S, error)) (all []string) {
	for i := range 20 {
		if s, err := parse(S(i).String()); err == nil && int(s) == i {
			all = append(all, s.String())
		}
	}
	return all
}

func parametersOf(t *testing.T, path string, names []string) (all []object) {
	for _, name := range names {
		p, ok := params[name]
		require.True(t, ok, "%s: the parameter %s is not described", path, name)
		schema := object{"type": p.kind}
		switch p.kind {
		case "uuid":
			schema = object{"type": "string", "format": "uuid"}
		case "label":
			schema = object{"type": "array", "items": object{"type": "string"}}
		case "state":
			require.NotEmpty(t, states[path], path)
			schema = object{"type": "array", "items": object{"type": "string", "enum": states[path]}}
		}
		if name == "kind" && kinds[path] != nil {
			schema["enum"] = kinds[path]
		}
		if path == exportPath && name == "format" {
			p.takes, schema["enum"] = "the format of the event log: OCEL 2.0 as JSON, or IEEE 1849 XES", eventlog.Formats()
		}
		parameter := object{"name": name, "in": "query", "description": p.takes, "schema": schema}
		if p.kind == "state" {
			parameter["explode"] = false
		}
		all = append(all, parameter)
	}
	for _, name := range []string{"id", "name"} {
		if !strings.Contains(path, "{"+name+"}") {
			continue
		}
		schema := object{"type": "string"}
		if name == "id" {
			schema["format"] = "uuid"
		}
		all = append(all, object{"name": name, "in": "path", "required": true, "schema": schema})
	}
	return all
}

// bodies are the types of what requests bring along.
var bodies = map[string]reflect.Type{
	"/api/v1/commands": reflect.TypeFor[commandBody](), "/api/v1/schedules/{name}": reflect.TypeFor[scheduleCommand](),
	"/api/v1/bulk": reflect.TypeFor[bulkStart](), "/api/v1/bulk/{id}": reflect.TypeFor[bulkCommand](),
	"/api/v1/schedules": reflect.TypeFor[newSchedule](),
}

func document(t *testing.T) []byte {
	s := &schemas{all: object{}}
	fault := object{"description": "an error", "content": object{"application/problem+json": object{"schema": s.ref(reflect.TypeFor[problem]())}}}
	paths := object{}
	for pattern, route := range (&API{}).Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		call := object{"summary": route.Summary, "responses": object{"200": s.answerOf(t, method, path, route.Params), "default": fault}}
		parameters := parametersOf(t, path, route.Params)
		if method == http.MethodPost {
			parameters = append(parameters, object{"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string"},
				"description": "the same key and request again have the effect and the answer of the first"})
			call["requestBody"] = object{"required": true, "content": s.bodyOf(t, path)}
			if bodies[path] == reflect.TypeFor[scheduleCommand]() {
				call["responses"] = object{"200": object{"description": "it is done"}, "default": fault}
			}
		}
		if parameters != nil {
			call["parameters"] = parameters
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = call
	}
	text, err := json.MarshalIndent(object{"openapi": "3.1.0", "info": object{"title": "Tasq", "version": "1"}, "paths": paths,
		"components": object{"schemas": s.all}}, "", " ")
	require.NoError(t, err)
	return append(text, '\n')
}

// bodyOf describes what a request brings along.
func (s *schemas) bodyOf(t *testing.T, path string) object {
	if path == "/api/v1/cases" {
		return object{"application/x-ndjson": object{"schema": object{"type": "string", "description": "the input of a case in each line; at most 64 MiB"}}}
	}
	require.NotNil(t, bodies[path], path)
	return object{"application/json": object{"schema": s.of(bodies[path])}}
}

// answerOf describes what a path answers with.
func (s *schemas) answerOf(t *testing.T, method, path string, names []string) object {
	known, ok := answers[method+" "+path]
	if !ok {
		known, ok = answers[path]
	}
	require.True(t, ok, "%s has no type", path)
	schema := object{"type": "object"}
	if known.of != nil {
		schema = s.of(known.of)
	}
	// A body with dryRun is answered with what the command would do.
	if method == http.MethodPost && (path == "/api/v1/commands" || path == "/api/v1/schedules") {
		schema = object{"oneOf": []object{schema, s.of(reflect.TypeFor[preview]())}}
	}
	if known.lists {
		next := object{"type": "string"}
		if known.of == reflect.TypeFor[record.Change]() || known.of == reflect.TypeFor[store.Frame]() || known.of == reflect.TypeFor[record.Act]() {
			next = object{"type": "integer"}
		}
		properties, required := object{"rows": object{"type": "array", "items": schema}, "next": next, "cut": object{"type": "boolean"}, "note": object{"type": "string"}}, []string{"rows"}
		if path == "/api/v1/counts" {
			properties["stranded"], required = s.of(reflect.TypeFor[source.Examination]()), append(required, "stranded")
		}
		schema = object{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
	}
	kind := "application/json"
	if path == "/api/v1/stream" {
		kind = "text/event-stream"
	}
	content := object{kind: object{"schema": schema}}
	if path == exportPath {
		content["application/xml"] = object{"schema": object{"type": "string", "description": "XES"}}
	} else if slices.Contains(names, "format") {
		content["text/csv"] = object{"schema": object{"type": "string", "description": "a line of names, and a line for each row"}}
		content["application/x-ndjson"] = object{"schema": object{"type": "string", "description": "an object for each row, each in a line"}}
	}
	return object{"description": "the answer", "content": content}
}

// The description is made of the types that the answers are written from, and names every route. go test -update writes
// it again.
func TestTheDescriptionIsThatOfTheRoutes(t *testing.T) {
	text := document(t)
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", text, 0o644))
		return
	}
	require.Equal(t, string(text), string(openAPI), "run go test ./admin/internal/api -update")
	require.Regexp(t, regexp.MustCompile(`"openapi": "3.1.0"`), string(openAPI))
}

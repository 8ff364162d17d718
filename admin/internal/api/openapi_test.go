package api

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/workflow"
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
		if !f.IsExported() || tag == "-" || f.Anonymous {
			continue
		}
		properties[tag] = s.of(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, tag)
		}
	}
	slices.Sort(required)
	s.all[name].(object)["required"] = required
	return ref
}

// answers are the types of what the paths answer with; a list has rows of it.
var answers = map[string]struct {
	of    reflect.Type
	lists bool
}{
	"/api/v1/cases": {reflect.TypeFor[record.Case](), true}, "/api/v1/cases/{id}": {reflect.TypeFor[record.Case](), false},
	"/api/v1/cases/{id}/why": {reflect.TypeFor[why.Answer](), false}, "/api/v1/cases/{id}/history": {reflect.TypeFor[record.Change](), true},
	"/api/v1/items": {reflect.TypeFor[record.Item](), true}, "/api/v1/items/{id}": {reflect.TypeFor[record.Item](), false},
	"/api/v1/jobs": {reflect.TypeFor[record.Job](), true}, "/api/v1/jobs/{id}": {reflect.TypeFor[record.Job](), false},
	"/api/v1/steps": {reflect.TypeFor[record.Step](), true}, "/api/v1/events": {reflect.TypeFor[record.Event](), true},
	"/api/v1/incidents": {reflect.TypeFor[record.Incident](), true}, "/api/v1/definitions": {reflect.TypeFor[record.Definition](), true},
	"/api/v1/counts": {reflect.TypeFor[record.Count](), true}, "/api/v1/commands": {reflect.TypeFor[workflow.Result](), false},
	"/api/v1/stats":  {reflect.TypeFor[rates](), false},
	"/api/v1/queues": {reflect.TypeFor[source.Queue](), true}, "/api/v1/limits": {reflect.TypeFor[workflow.LimitInfo](), true},
	"/api/v1/schedules": {reflect.TypeFor[schedules.Description](), true}, "/api/v1/schedules/{name}": {reflect.TypeFor[schedules.Description](), false},
	"/api/v1/stream": {reflect.TypeFor[entryRow](), false}, "/api/v1/openapi.json": {},
}

func document(t *testing.T) []byte {
	s := &schemas{all: object{}}
	fault := object{"description": "an error", "content": object{"application/problem+json": object{"schema": s.ref(reflect.TypeFor[problem]())}}}
	paths := object{}
	for pattern := range (&API{}).Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		known, ok := answers[path]
		require.True(t, ok, "%s has no type", path)
		schema := object{"type": "object"}
		if known.of != nil {
			schema = s.of(known.of)
		}
		if known.lists {
			next := object{"type": "string"}
			if known.of == reflect.TypeFor[record.Change]() {
				next = object{"type": "integer"}
			}
			schema = object{"type": "object", "additionalProperties": false, "required": []string{"rows"},
				"properties": object{"rows": object{"type": "array", "items": schema}, "next": next}}
		}
		kind := "application/json"
		if path == "/api/v1/stream" {
			kind = "text/event-stream"
		}
		call := object{"responses": object{"200": object{"description": "the answer", "content": object{kind: object{"schema": schema}}}, "default": fault}}
		if method == "POST" {
			call["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": object{"type": "object",
				"description": "a command, in the JSON form of workflow.Command"}}}}
			call["parameters"] = []object{{"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string"}}}
		}
		if strings.Contains(path, "{id}") {
			call["parameters"] = []object{{"name": "id", "in": "path", "required": true, "schema": object{"type": "string", "format": "uuid"}}}
		}
		if strings.Contains(path, "{name}") {
			call["parameters"] = []object{{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}}}
		}
		if method == "POST" && path == "/api/v1/schedules/{name}" {
			call["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": s.of(reflect.TypeFor[scheduleCommand]())}}}
			call["responses"] = object{"200": object{"description": "it is done"}, "default": fault}
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

// The description is made of the types that the answers are written from, and names every route. go test -update writes it anew.
func TestTheDescriptionIsThatOfTheRoutes(t *testing.T) {
	text := document(t)
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", text, 0o644))
		return
	}
	require.Equal(t, string(text), string(openAPI), "run go test ./admin/internal/api -update")
	require.Regexp(t, regexp.MustCompile(`"openapi": "3.1.0"`), string(openAPI))
}

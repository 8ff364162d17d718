package check_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

func TestJSONForm(t *testing.T) {
	_, text := example(t, verify.ImproperCompletion)
	var b strings.Builder
	out := check.JSON{W: &b}
	require.NoError(t, out.File(read("claims.net", text+sound)))
	require.NoError(t, out.File(read("torn.net", "wrkflow")))
	require.NoError(t, out.File(&check.File{Name: "LICENSE.txt", Passed: true}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 3)
	require.JSONEq(t, `{"file": "claims.net", "format": "net notation", "net": "claims", "line": 1, "verdict": "unsound",
		"findings": [{"code": "improper-completion",
			"text": "a case can complete while work is left over: \"register->damage\"",
			"fix": "let the branches meet in an and-join before the end, let only one of them run (an xor-split), or let the last task cancel the others (a cancellation region)",
			"elements": [{"name": "settled", "line": 3}, {"name": "register->damage", "line": 9}],
			"witness": {"text": "register; police; settle; then settled 1, register->damage 1",
				"steps": [{"task": "register"}, {"task": "police"}, {"task": "settle", "input": "police->settle"}],
				"marking": [{"condition": "settled", "tokens": 1}, {"condition": "register->damage", "tokens": 1}]}}],
		"warnings": [{"code": "and-split-xor-join", "subject": "settle",
			"text": "the xor-join of \"settle\" does not wait for all the branches that \"register\" starts together (and)",
			"fix": "make the join of \"settle\" and, or the split of \"register\" xor",
			"elements": [{"name": "settle", "line": 7}, {"name": "register", "line": 4}]},
			{"code": "xor-join-twice", "subject": "settle",
			"text": "the xor-join of \"settle\" can hold two tokens at once, and takes only one when it starts",
			"fix": "make it an and- or or-join if it is meant to run once", "elements": [{"name": "settle", "line": 7}]}],
		"states": 1}`, regexp.MustCompile(`"states":\d+`).ReplaceAllString(lines[0], `"states":1`))
	require.JSONEq(t, `{"file": "claims.net", "format": "net notation", "net": "fine", "line": 13, "verdict": "sound",
		"findings": [], "warnings": [], "states": 0}`, lines[1])
	require.JSONEq(t, `{"file": "torn.net", "verdict": "unreadable", "findings": [], "warnings": [], "states": 0, "problems": [
		{"code": "syntax", "line": 1, "text": "unknown statement \"wrkflow\"; did you mean \"workflow\"?"}]}`, lines[2])
	require.Contains(t, lines[0], `"register->damage"`, "arrows stay readable")
}

// The examples of all codes have everything in them that a row can hold.
func TestJSONOfEveryCode(t *testing.T) {
	for _, x := range check.Explanations() {
		var b strings.Builder
		require.NoError(t, check.JSON{W: &b}.File(read(x.File, x.Example)))
		d := json.NewDecoder(strings.NewReader(b.String()))
		d.DisallowUnknownFields()
		var row check.Row
		require.NoError(t, d.Decode(&row))
		require.NotEmpty(t, row.Verdict)
		has := row.Verdict == string(x.Code) || x.Code == verify.Incomplete && row.Incomplete && row.Exhausted != "" ||
			slices.ContainsFunc(slices.Concat(row.Findings, row.Warnings), func(f check.RowFinding) bool { return f.Code == string(x.Code) }) ||
			slices.ContainsFunc(row.Problems, func(p check.RowProblem) bool { return p.Code == string(x.Code) })
		require.True(t, has, x.Code)
	}
}

type object = map[string]any

// sarif writes what was found in files, and reads it back.
func sarif(t *testing.T, files ...*check.File) object {
	t.Helper()
	s := &check.SARIF{Version: "v1"}
	for _, f := range files {
		require.NoError(t, s.File(f))
	}
	var b strings.Builder
	require.NoError(t, s.Write(&b))
	var log object
	require.NoError(t, json.Unmarshal([]byte(b.String()), &log))
	return log
}

// at goes down a path of keys.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for _, key := range path {
		o, ok := v.(object)
		require.True(t, ok, "%s in %v", key, v)
		require.Contains(t, o, key)
		v = o[key]
	}
	return v
}

// What the schema of SARIF 2.1.0 requires is there: sarifLog has version and runs, a run tool, a tool driver, a driver
// name, a rule id, a result message, a message text, a code flow threadFlows, a thread flow locations, an invocation
// executionSuccessful, a suppression kind; a rule index points at its rule, lines and ids count from 1.
func TestSARIFHasWhatTheSchemaRequires(t *testing.T) {
	files := []*check.File{read("torn.net", "wrkflow"), read("a b/ümlaut.net", sound)}
	for _, x := range check.Explanations() {
		files = append(files, read(x.File, x.Example))
	}
	log := sarif(t, files...)
	require.Equal(t, "2.1.0", at(t, log, "version"))
	runs := at(t, log, "runs").([]any)
	require.Len(t, runs, 1)
	require.Equal(t, "tasq", at(t, runs[0], "tool", "driver", "name"))
	require.Equal(t, false, at(t, runs[0], "invocations").([]any)[0].(object)["executionSuccessful"])
	rules := at(t, runs[0], "tool", "driver", "rules").([]any)
	levels := []any{"none", "note", "warning", "error"}
	for _, r := range rules {
		require.NotEmpty(t, at(t, r, "id"))
		require.NotEmpty(t, at(t, r, "shortDescription", "text"))
		require.Contains(t, levels, at(t, r, "defaultConfiguration", "level"))
	}
	results := at(t, runs[0], "results").([]any)
	require.Greater(t, len(results), len(check.Explanations()))
	flows := 0
	for _, r := range results {
		require.NotEmpty(t, at(t, r, "message", "text"))
		require.Contains(t, levels, at(t, r, "level"))
		rule := rules[int(at(t, r, "ruleIndex").(float64))]
		require.Equal(t, at(t, rule, "id"), at(t, r, "ruleId"))
		locations := at(t, r, "locations").([]any)
		require.Len(t, locations, 1)
		require.NotEmpty(t, at(t, locations[0], "physicalLocation", "artifactLocation", "uri"))
		require.GreaterOrEqual(t, at(t, locations[0], "physicalLocation", "region", "startLine"), 1.0)
		if list, has := r.(object)["codeFlows"]; has {
			flows++
			thread := at(t, list.([]any)[0], "threadFlows").([]any)[0]
			for _, step := range at(t, thread, "locations").([]any) {
				require.NotEmpty(t, at(t, step, "location", "message", "text"))
				require.NotEmpty(t, at(t, step, "location", "physicalLocation", "region", "startLine"))
			}
		}
	}
	require.Greater(t, flows, 5)
}

func TestSARIFResult(t *testing.T) {
	_, text := example(t, verify.ImproperCompletion)
	name := filepath.FromSlash("./my models/claims.net")
	log := sarif(t, read(name, text))
	require.Equal(t, true, at(t, at(t, at(t, log, "runs").([]any)[0], "invocations").([]any)[0], "executionSuccessful"))
	result := at(t, at(t, log, "runs").([]any)[0], "results").([]any)[0]
	got, err := json.Marshal(result)
	require.NoError(t, err)
	place := func(line string) string {
		return `{"artifactLocation": {"uri": "my%20models/claims.net"}, "region": {"startLine": ` + line + `}}`
	}
	step := func(line, text string) string {
		return `{"location": {"physicalLocation": ` + place(line) + `, "message": {"text": "` + text + `"}}}`
	}
	require.JSONEq(t, `{"ruleId": "improper-completion", "ruleIndex": 1, "level": "error",
		"message": {"text": "a case can complete while work is left over: \"register->damage\"; run: register; police; settle; `+
		`then settled 1, register->damage 1. To fix it: let the branches meet in an and-join before the end, let only one of them run `+
		`(an xor-split), or let the last task cancel the others (a cancellation region)"},
		"locations": [{"physicalLocation": `+place("9")+`,
			"logicalLocations": [{"name": "claims", "fullyQualifiedName": "claims", "kind": "module"}]}],
		"relatedLocations": [{"id": 1, "physicalLocation": `+place("3")+`, "message": {"text": "settled"}}],
		"codeFlows": [{"threadFlows": [{"locations": [`+step("4", "register")+`, `+step("5", "police")+`, `+step("7", "settle")+`]}]}]}`,
		string(got))
}

// Names from hostile files cannot command a terminal.
func TestTextIsHarmless(t *testing.T) {
	f := &check.File{Name: "w.net", Nets: []check.Net{{Name: "w\x1b[2J\u202e", Problems: []net.Problem{
		{Code: net.NoFlowIn, Subject: "a\nb\u2028", Pos: net.Pos{File: "w\x1b.net", Line: 1}, Text: "task \"a\nb\x1b]0;x\a\" has no flow in"}}}}}
	var b strings.Builder
	out := check.Text{W: &b, Verbose: true}
	require.NoError(t, out.File(f))
	require.NotContains(t, b.String(), "\x1b")
	require.NotContains(t, b.String(), "\a")
	require.NotContains(t, b.String(), "\u202e", "it shows a line in another order")
	require.NotContains(t, b.String(), "\u2028")
	require.Equal(t, 2, strings.Count(b.String(), "\n"))
}

// A place without arcs is reported once: the reader's note on it is no second warning, and is not printed beside the first.
func TestIsolatedPlaceIsReportedOnce(t *testing.T) {
	f := check.Read("m.pnml", strings.NewReader(`<pnml><net id="n"><place id="lost"/>
		<place id="s"><initialMarking><text>1</text></initialMarking></place><place id="e"/><transition id="t"/>
		<arc id="a" source="s" target="t"/><arc id="b" source="t" target="e"/></net></pnml>`), check.Options{})
	var b strings.Builder
	require.NoError(t, (&check.Text{W: &b, Verbose: true}).File(f))
	require.Equal(t, `m.pnml:1: warning: isolated lost: no transition takes from "lost" or puts into it, so it changes nothing [n]
    fix: connect "lost", or take it out
m.pnml:1: n is sound
`, b.String())
}

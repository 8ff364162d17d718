package check

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// SARIF collects the results, and writes them as one document of the Static Analysis Results Interchange Format 2.1.0
// (OASIS), which code hosts and editors show beside the source. A run that shows a finding is a code flow; workflows of
// a program have the positions of their declarations.
type SARIF struct {
	Version string // of the command
	results []sarifResult
	rules   map[string]bool // those with results
	broken  bool            // a file could not be read
}

// The written parts of the format, with the names of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string      `json:"id"`
		Short   sarifText   `json:"shortDescription"`
		Help    *sarifText  `json:"help,omitempty"`
		Default sarifConfig `json:"defaultConfiguration"`
	}
	sarifConfig struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful bool `json:"executionSuccessful"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Flows        []sarifCodeFlow    `json:"codeFlows,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind string `json:"kind"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name          string `json:"name"`
		QualifiedName string `json:"fullyQualifiedName"`
		Kind          string `json:"kind"`
	}
	sarifCodeFlow struct {
		Threads []sarifThread `json:"threadFlows"`
	}
	sarifThread struct {
		Locations []sarifStep `json:"locations"`
	}
	sarifStep struct {
		Location sarifLocation `json:"location"`
	}
)

const (
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifVersion = "2.1.0"
	sarifAbout   = "https://github.com/tasq-dev/tasq/blob/main/docs/verification.md"
)

// File adds the messages of one file.
func (s *SARIF) File(f *File) error {
	if f.Passed {
		return nil
	}
	s.broken = s.broken || f.Err != nil
	for _, m := range f.Messages() {
		if s.rules == nil {
			s.rules = make(map[string]bool)
		}
		s.rules[m.Code] = true
		s.results = append(s.results, s.result(m))
	}
	return nil
}

func (s *SARIF) result(m Message) sarifResult {
	text := m.Text
	if m.Finding != nil && m.Finding.Witness != nil {
		text += "; run: " + m.Finding.Witness.Brief(maxSteps)
	}
	if m.Fix != "" {
		text += ". To fix it: " + m.Fix
	}
	r := sarifResult{
		RuleID: m.Code, Level: levelOf(m), Message: sarifText{printable.Line(text)}, Locations: []sarifLocation{m.location()},
	}
	for i, o := range m.Others {
		if len(r.Related) == maxRelated {
			break
		}
		at := sarifLocation{ID: i + 1, Physical: physical(o.Pos)}
		if o.Name != "" {
			at.Message = &sarifText{o.Name}
		}
		r.Related = append(r.Related, at)
	}
	if m.Level == Allowed {
		r.Suppressions = []sarifSuppression{{"inSource"}}
	}
	if m.Finding != nil && m.Finding.Witness != nil && len(m.Finding.Witness.Steps) > 0 {
		r.Flows = []sarifCodeFlow{{[]sarifThread{{flow(m)}}}}
	}
	return r
}

// Limits for one result.
const (
	maxRelated = 50
	maxSteps   = 40
)

func levelOf(m Message) string {
	if m.Level == Failure && m.Code != string(verify.Undecided) {
		return "error"
	}
	return "warning"
}

// location returns the location of a message: the file, the line and the element of the net.
func (m Message) location() sarifLocation {
	at := sarifLocation{Physical: physical(m.Pos)}
	if m.Net != nil {
		name, kind := m.Net.Name, "module"
		if m.Subject != "" {
			name, kind = m.Subject, "member"
		}
		at.Logical = []sarifLogical{{name, strings.TrimSuffix(m.Net.Name+"."+m.Subject, "."), kind}}
	}
	return at
}

func physical(p net.Pos) *sarifPhysical {
	if p.File == "" {
		return nil
	}
	at := &sarifPhysical{Artifact: sarifArtifact{URI: uri(p.File)}}
	if p.Line > 0 {
		at.Region = &sarifRegion{p.Line}
	}
	return at
}

// uri returns a path as a URI reference. A relative path stays relative, so that it is resolved against the root of the
// sources.
func uri(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return strings.TrimPrefix(u.String(), "./")
}

// flow returns the steps of a run, each at the declaration of its task.
func flow(m Message) []sarifStep {
	places := make(map[string]net.Pos)
	var steps []sarifStep
	for _, step := range m.Finding.Witness.Steps[:min(maxSteps, len(m.Finding.Witness.Steps))] {
		p, known := places[step.Task]
		if !known {
			p = m.Net.place(step.Task)
			places[step.Task] = p
		}
		steps = append(steps, sarifStep{sarifLocation{Physical: physical(p), Message: &sarifText{printable.Line(step.String())}}})
	}
	return steps
}

// Write writes the document.
func (s *SARIF) Write(w io.Writer) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "tasq", Version: s.Version, InformationURI: sarifAbout, Rules: s.ruleList(),
		}},
		Invocations: []sarifInvocation{{!s.broken}}, ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
	}
	index := make(map[string]int)
	for i, r := range run.Tool.Driver.Rules {
		index[r.ID] = i
	}
	for _, r := range s.results {
		r.RuleIndex = index[r.RuleID]
		run.Results = append(run.Results, r)
	}
	return printable.NewEncoder(w).Indent("  ").Encode(sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}})
}

// ruleList describes the codes of verification, and the codes of unreadable files that occurred.
func (s *SARIF) ruleList() []sarifRule {
	var rules []sarifRule
	for _, x := range Explanations() {
		rules = append(rules, sarifRule{
			ID: string(x.Code), Short: sarifText{x.Title}, Help: &sarifText{x.Meaning},
			Default: sarifConfig{map[Kind]string{KindFinding: "error", KindWarning: "warning", KindProblem: "error", KindNote: "warning"}[x.Kind]},
		})
	}
	var codes []string
	for code := range s.rules {
		if !slices.ContainsFunc(rules, func(r sarifRule) bool { return r.ID == code }) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	for _, code := range codes {
		rules = append(rules, sarifRule{
			ID: code, Short: sarifText{fmt.Sprintf("The file cannot be read: %s.", code)}, Default: sarifConfig{"error"},
		})
	}
	return rules
}

package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/bpmn"
	"github.com/tasq-dev/tasq/net/pnml"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/net/yawl"
)

// library is an archive of process models that others drew. None of them is part of this repository.
type library struct {
	name, who, archive string
	endings            []string
}

var libraries = []library{
	{"ibm", "IBM A and B1 (PNML)", "ibm-a-b1.tar.gz", []string{".pnml"}},
	{"yawl", "YAWL's examples", "yawl.tar.gz", []string{".xml", ".yawl", ".ywl"}},
	{"bpmn", "BPMN Analyzer, fbpmn", "bpmn.tar.gz", []string{".bpmn"}},
}

// subject is a net to be verified: a plain one, or a definition.
type subject struct {
	name       string
	petri      *net.Petri
	definition *net.Definition
}

// decode reads the models of files, each by the ending of its name.
func decode(files []modeltest.File) ([]subject, error) {
	var all []subject
	for _, f := range files {
		read := decodeYAWL
		switch path.Ext(f.Name) {
		case ".pnml":
			read = decodePNML
		case ".bpmn":
			read = decodeBPMN
		}
		nets, err := read(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, s := range nets {
			s.name = f.Base() + ": " + s.name
			all = append(all, s)
		}
	}
	return all, nil
}

func decodePNML(f modeltest.File) ([]subject, error) {
	result, err := pnml.Decode(strings.NewReader(f.Data), pnml.Options{File: f.Base()})
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, n := range result.Nets {
		all = append(all, subject{name: n.Petri.Name, petri: n.Petri, definition: n.Definition})
	}
	return all, nil
}

func decodeYAWL(f modeltest.File) ([]subject, error) {
	result, err := yawl.Decode(strings.NewReader(f.Data), yawl.Options{File: f.Base()})
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, n := range result.Nets {
		all = append(all, subject{name: n.Definition.Name, definition: n.Definition})
	}
	return all, nil
}

func decodeBPMN(f modeltest.File) ([]subject, error) {
	result, err := bpmn.Decode(strings.NewReader(f.Data), bpmn.Options{File: f.Base()})
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, n := range result.Nets {
		all = append(all, subject{name: n.Definition.Name, definition: n.Definition})
	}
	return all, nil
}

// wellFormed leaves out what Build would refuse before it came to verifying.
func wellFormed(all []subject) []subject {
	return slices.DeleteFunc(all, func(s subject) bool { return s.petri == nil && len(s.definition.Check()) > 0 })
}

// verify is what Build and tasq check do with a net: compiling, if it is a definition, and verifying with all
// witnesses.
func (s subject) verify() (verify.Report, error) {
	if s.petri != nil {
		return verify.Petri(s.petri, verify.Options{}), nil
	}
	n, err := net.Compile(s.definition)
	if err != nil {
		return verify.Report{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return verify.Net(n, verify.Options{}), nil
}

// search is the naive search of the same net.
func (s subject) search(budget int) (answer, error) {
	if s.petri != nil {
		return searchPetri(s.petri, budget), nil
	}
	n, err := net.Compile(s.definition)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return searchNet(n, budget), nil
}

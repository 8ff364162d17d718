package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"
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

// decode reads the models of files.
func decode(files []modeltest.File) ([]subject, error) {
	var all []subject
	for _, f := range files {
		m, err := model.Read(f.Base(), strings.NewReader(f.Data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for i := range m.Nets {
			n := &m.Nets[i]
			all = append(all, subject{name: f.Base() + ": " + n.Name, petri: n.Petri, definition: n.Definition})
		}
	}
	return all, nil
}

// wellFormed leaves out what Build would refuse before it came to verifying.
func wellFormed(all []subject) []subject {
	return slices.DeleteFunc(all, func(s subject) bool { return s.petri == nil && len(s.definition.Check()) > 0 })
}

// verify is what Build and tasq check do with a net: compiling, if it is a definition, and verifying with all
// witnesses.
func (s subject) verify() (net.Report, error) {
	if s.petri != nil {
		return net.VerifyPetri(s.petri, net.VerifyOptions{}), nil
	}
	n, err := net.Compile(s.definition)
	if err != nil {
		return net.Report{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return net.Verify(n, net.VerifyOptions{}), nil
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

package pnml

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

const (
	namespace = "http://www.pnml.org/version-2009/grammar/pnml"
	netType   = "http://www.pnml.org/version-2009/grammar/ptnet"
)

type namer = xmlread.Namer

// Encode writes definitions as one PNML file, each as a net with one page. Other tools see a place/transition net in
// which each task is one transition that takes from all its inputs and puts into all its outputs. Gates, regions, kinds
// and names are in annotations of the tool "tasq", so that [Decode] returns equal definitions except for the positions,
// which are those of the file. A duplicate flow is written once.
//
// The error is that of the writer, or names what is duplicate, unknown or not allowed in an XML file.
func Encode(w io.Writer, defs ...*net.Definition) error {
	return write(w, len(defs), func(e *encoder, i int) error { return e.definition(i, defs[i]) })
}

// EncodePetri writes plain nets as one PNML file, each as a net with one page, with weights and initial markings.
// Place/transition nets have no reset arcs; they are written as annotations of the tool "tasq" and not read back. Such
// a net has other runs in other tools.
func EncodePetri(w io.Writer, nets ...*net.Petri) error {
	return write(w, len(nets), func(e *encoder, i int) error { return e.petri(i, nets[i]) })
}

// encoder writes one file. It keeps the first error, after which writes do nothing.
type encoder struct {
	w     *bufio.Writer
	ids   namer // of the whole file, as XML demands
	arcs  int
	depth int
	err   error
}

func write(w io.Writer, n int, one func(*encoder, int) error) error {
	e := &encoder{w: bufio.NewWriter(w)}
	e.line(`<?xml version="1.0" encoding="UTF-8"?>`)
	e.open("pnml", "xmlns", namespace)
	for i := range n {
		if err := one(e, i); err != nil {
			return err
		}
	}
	e.close("pnml")
	if e.err != nil {
		return e.err
	}
	return e.w.Flush()
}

func (e *encoder) definition(i int, def *net.Definition) error {
	w, err := layOut(def)
	if err != nil {
		return err
	}
	e.open("net", "id", e.ids.Name("net"+fmt.Sprint(i+1)), "type", netType)
	e.label("name", def.Name)
	e.empty("toolspecific", "tool", tool, "version", "1", "name", def.Name)
	e.open("page", "id", e.ids.Name("page"+fmt.Sprint(i+1)))
	places, tasks := make([]string, len(w.conditions)), make([]string, len(def.Tasks))
	for j, c := range w.conditions {
		places[j] = e.condition(c)
	}
	for j := range def.Tasks {
		tasks[j] = e.task(&def.Tasks[j])
	}
	for _, f := range w.flows {
		if f.from >= 0 {
			e.arc(tasks[f.from], places[f.cond], 1)
		}
		if f.to >= 0 {
			e.arc(places[f.cond], tasks[f.to], 1)
		}
	}
	e.close("page")
	e.close("net")
	return e.err
}

func (e *encoder) condition(c laidCondition) string {
	id := e.ids.Name(plainName(c))
	e.open("place", "id", id)
	e.label("name", c.name)
	e.open("toolspecific", "tool", tool, "version", "1", "name", c.name)
	if c.before != "" {
		e.empty("implicit")
	} else {
		e.empty("condition", "role", roleNames[c.role])
	}
	e.close("toolspecific")
	if c.role == net.Start {
		e.label("initialMarking", "1")
	}
	e.close("place")
	return id
}

func (e *encoder) task(t *net.Task) string {
	id := e.ids.Name(t.Name)
	e.open("transition", "id", id)
	e.label("name", t.Name)
	e.open("toolspecific", "tool", tool, "version", "1", "name", t.Name)
	attrs := []string{"kind", kindNames[t.Kind], "join", gateNames[t.Join], "split", gateNames[t.Split]}
	if len(t.Cancels)+len(t.Of) == 0 {
		e.empty("task", attrs...)
	} else {
		e.open("task", attrs...)
		for _, name := range t.Cancels {
			e.empty("cancels", "name", name)
		}
		for _, name := range t.Of {
			e.empty("runs", "name", name)
		}
		e.close("task")
	}
	e.close("toolspecific")
	e.close("transition")
	return id
}

func (e *encoder) petri(i int, p *net.Petri) error {
	if err := checkPetri(p); err != nil {
		return err
	}
	e.open("net", "id", e.ids.Name("net"+fmt.Sprint(i+1)), "type", netType)
	e.label("name", p.Name)
	e.open("page", "id", e.ids.Name("page"+fmt.Sprint(i+1)))
	places := make([]string, len(p.Places))
	for j, place := range p.Places {
		places[j] = e.ids.Name(place.Name)
		e.open("place", "id", places[j])
		e.label("name", place.Name)
		if place.Initial > 0 {
			e.label("initialMarking", fmt.Sprint(place.Initial))
		}
		e.close("place")
	}
	for j := range p.Transitions {
		e.transition(&p.Transitions[j], places)
	}
	e.close("page")
	e.close("net")
	return e.err
}

// checkPetri returns an error for a net with invalid indexes, which is a bug of the program that built it.
func checkPetri(p *net.Petri) error {
	if p == nil {
		return errors.New("pnml: a net is nil")
	}
	for i := range p.Transitions {
		t := &p.Transitions[i]
		for _, a := range slices.Concat(t.In, t.Out) {
			if a.Place < 0 || a.Place >= len(p.Places) || a.Weight < 1 {
				return fmt.Errorf("pnml: transition %q has an arc of weight %d to place number %d of %d",
					t.Name, a.Weight, a.Place, len(p.Places))
			}
		}
		for _, r := range t.Resets {
			if r < 0 || r >= len(p.Places) {
				return fmt.Errorf("pnml: transition %q resets place number %d of %d", t.Name, r, len(p.Places))
			}
		}
	}
	return nil
}

func (e *encoder) transition(t *net.PetriTransition, places []string) {
	id := e.ids.Name(t.Name)
	e.open("transition", "id", id)
	e.label("name", t.Name)
	if len(t.Resets) > 0 {
		e.open("toolspecific", "tool", tool, "version", "1")
		for _, p := range t.Resets {
			e.empty("resets", "place", places[p])
		}
		e.close("toolspecific")
	}
	e.close("transition")
	for _, a := range t.In {
		e.arc(places[a.Place], id, a.Weight)
	}
	for _, a := range t.Out {
		e.arc(id, places[a.Place], a.Weight)
	}
}

func (e *encoder) arc(from, to string, weight int) {
	e.arcs++
	attrs := []string{"id", e.ids.Name("arc" + fmt.Sprint(e.arcs)), "source", from, "target", to}
	if weight == 1 {
		e.empty("arc", attrs...)
		return
	}
	e.open("arc", attrs...)
	e.label("inscription", fmt.Sprint(weight))
	e.close("arc")
}

func (e *encoder) label(name, text string) {
	e.line("<" + name + "><text>" + e.escape(text) + "</text></" + name + ">")
}

func (e *encoder) open(name string, attrs ...string) {
	e.line("<" + name + e.attributes(attrs) + ">")
	e.depth++
}

func (e *encoder) close(name string) {
	e.depth--
	e.line("</" + name + ">")
}

func (e *encoder) empty(name string, attrs ...string) {
	e.line("<" + name + e.attributes(attrs) + "/>")
}

func (e *encoder) attributes(attrs []string) string {
	var b strings.Builder
	for i := 0; i+1 < len(attrs); i += 2 {
		b.WriteString(" " + attrs[i] + `="` + e.escape(attrs[i+1]) + `"`)
	}
	return b.String()
}

func (e *encoder) line(s string) {
	if e.err == nil {
		_, e.err = e.w.WriteString(strings.Repeat("  ", e.depth) + s + "\n")
	}
}

// escape keeps the first error, since XML cannot represent most control characters.
func (e *encoder) escape(s string) string {
	for i, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF ||
			r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			if e.err == nil {
				e.err = fmt.Errorf("pnml: the name %q holds a character that cannot stand in an XML file", s)
			}
			return ""
		}
	}
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder never fails
	return b.String()
}

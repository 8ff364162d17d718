package view

import (
	"net/url"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store/state"
)

// doctor is the page of the state of the database and the engine.
func (s *Site) doctor(r *Request) (*Page, error) {
	late, err := s.overdueTable(r)
	if err != nil {
		return nil, err
	}
	stranded, err := s.stranded(r)
	if err != nil {
		return nil, err
	}
	checks, err := s.checks(r, len(late.Rows), stranded)
	if err != nil {
		return nil, err
	}
	facts, err := s.database(r)
	if err != nil {
		return nil, err
	}
	p := &Page{Title: "Doctor", Nav: "Doctor", Parts: []Part{{ID: "head", Template: "list", Data: head{Title: "Doctor",
		About: "The state of the database and of the program that owns it. Reload to check again."}},
		{ID: "checks", Template: "tablepart", Data: checks}, {ID: "database", Template: "database", Data: facts}, {ID: "stranded", Template: "tablepart", Data: stranded}}}
	p.Live = s.checked.runs() // its progress
	if err := s.engines(r, p); err != nil {
		return nil, err
	}
	if len(late.Rows) > 0 {
		p.Parts = append(p.Parts, Part{ID: "overdue", Template: "tablepart", Data: late})
	}
	return p, nil
}

// checks is the table of what was checked, with what each check found.
func (s *Site) checks(r *Request, overdue int, stranded *Table) (*Table, error) {
	t := &Table{ID: "checks", Title: "Checks", Head: []string{"state", "check", "found"}}
	add := func(name, word, found, about string) {
		t.row("", checkState(word), link(name, about), text(found))
	}
	if overdue == 0 {
		add("due work", "good", "all of it has begun", s.Link("/jobs"))
	} else {
		add("due work", "warn", counted(overdue, "job")+" overdue", "#part-overdue")
	}
	if err := s.incidentCheck(r, add); err != nil {
		return nil, err
	}
	if err := s.definitions(r, add); err != nil {
		return nil, err
	}
	s.ownWork(r, add)
	if err := s.limitsInUse(r, add); err != nil {
		return nil, err
	}
	switch {
	case len(stranded.Rows) > 0:
		add("cases", "bad", counted(len(stranded.Rows), "cause")+" why a case does not go on", "#part-stranded")
	case stranded.Note == "":
		add("cases", "good", "each goes on", s.Link("/cases"))
	}
	word, found := s.checked.words(r.Now)
	add("integrity", word, found, "#part-database")
	return t, nil
}

// checkState is the result of a check, in words.
func checkState(class string) Cell {
	words := map[string]string{"good": "ok", "warn": "attention", "bad": "problem", "pending": "not checked"}
	return Cell{Kind: "state", Text: class, Title: words[class]}
}

// addCheck adds the result of a check: its name, its class, what it found, and the address of what it is about.
type addCheck func(name, class, text, about string)

// incidentCheck counts the open incidents.
func (s *Site) incidentCheck(r *Request, add addCheck) error {
	open, err := s.openIncidents(r)
	if err != nil {
		return err
	}
	if open == 0 {
		add("incidents", "good", "none", s.Link("/incidents"))
		return nil
	}
	found, err := s.allOpen(r, open)
	if err == nil {
		add("incidents", "bad", found+" open", s.Link("/incidents"))
	}
	return err
}

// definitions lists the live cases whose definition the engine was not opened with, so that nothing happens in them. A
// process that only reads has no definitions.
func (s *Site) definitions(r *Request, add addCheck) error {
	all := s.Link("/workflows")
	here, err := s.Backend.Here().WithFleet(r, r.R)
	if err != nil {
		return err
	}
	if here.Unknown() {
		add("definitions", "pending", "not known: no program that has the database open has answered", all)
		return nil
	}
	where, lacks, do := "this program", "this program does not have", "start a program with it too"
	if here.Definition == nil {
		where, lacks, do = "an open program", "no open program has", "open a program with it"
	}
	list, err := why.ReadUnserved(r, r.R, here)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		add("definitions", "good", "each live case has its own in "+where, all)
	}
	for _, u := range list {
		name := "workflow " + u.Workflow
		if u.Version != "" {
			name += " " + u.Version
		}
		add(name, "bad", counted(int(u.Cases), "live case")+" of a definition that "+lacks+"; "+do,
			s.listLink("/cases", url.Values{"fingerprint": {u.Fingerprint}, "state": {state.CaseStarted.String()}}))
	}
	return nil
}

package tables

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// ReadCase reads a row of [Cases], without items, jobs and children.
func ReadCase(r *Row, netOf func(fingerprint string) (*net.Net, error)) (*state.Case, error) {
	c := &state.Case{
		ID: ID[workitem.CaseID](r), Root: ID[workitem.CaseID](r), Parent: ID[workitem.CaseID](r), ParentTask: r.Text(),
		Generation: int(r.Number()), Number: int(r.Number()), Workflow: r.Text(), Version: r.Text(),
		Fingerprint: r.Text(),
		Created:     r.Time(), Input: r.JSON(), Caller: ID[workitem.JobID](r), Options: r.JSON(),
		Priority: int(r.Number()), Predecessor: ID[workitem.CaseID](r), Key: r.Text(),
	}
	labels := r.JSON()
	c.Unique = r.Flag()
	c.State, c.Begun = parsed(r, "state of a case", state.ParseCaseState), r.Flag()
	marking, tasks := r.JSON(), r.JSON()
	c.Output, c.Failure, c.Ended, c.KeepUntil, c.LastSeq = r.JSON(), r.Failure(), r.Time(), r.Time(), r.Number()
	suspended := r.JSON()
	if r.Err != nil {
		return nil, r.Err
	}
	var err error
	if suspended != nil {
		if c.Suspended, err = state.DecodeSuspension(suspended); err != nil {
			return nil, fmt.Errorf("case %s: %w", c.ID, err)
		}
	}
	if labels != nil {
		if c.Labels, err = state.DecodeLabels(labels); err != nil {
			return nil, fmt.Errorf("case %s: %w", c.ID, err)
		}
	}
	if c.Net, err = netOf(c.Fingerprint); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	if c.Marking, err = state.DecodeMarking(marking, c.Net); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	if c.Tasks, err = state.DecodeTasks(tasks, c.Net); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	return c, nil
}

// ReadItem reads a row of [Items].
func ReadItem(r *Row) (*workitem.Item, error) {
	it := &workitem.Item{
		ID: ID[workitem.ID](r), Case: ID[workitem.CaseID](r), Task: r.Text(), Generation: int(r.Number()),
		Number: int(r.Number()), Attempt: int(r.Number()), Predecessor: ID[workitem.ID](r), Created: r.Time(),
		Due:   r.Time(),
		Input: r.JSON(), Queue: r.Text(), Priority: int(r.Number()),
		State: parsed(r, "state of a work item", workitem.ParseState), Successor: ID[workitem.ID](r), Output: r.JSON(),
		Failure: r.Failure(), By: r.Text(), Started: r.Time(), Ended: r.Time(), Retry: r.JSON(),
	}
	return it, r.Err
}

// ReadJob reads a row of [Jobs].
func ReadJob(r *Row) (*state.Job, error) {
	j := &state.Job{
		ID: ID[workitem.JobID](r), Case: ID[workitem.CaseID](r), Root: ID[workitem.CaseID](r), Task: r.Text(),
		Generation: int(r.Number()), Item: ID[workitem.ID](r), Kind: r.Text(), Name: r.Text(), Queue: r.Text(),
		Priority: int(r.Number()), Input: r.JSON(), Detached: r.Flag(), Created: r.Time(),
		State: parsed(r, "state of a job", state.ParseJobState), Due: r.Time(), Attempt: int(r.Number()),
		Crashes: int(r.Number()), Fence: r.Number(), Owner: r.Text(), Lease: r.Time(), Failure: r.Failure(),
		Ended: r.Time(),
	}
	return j, r.Err
}

// ReadStep reads a row of [Steps].
func ReadStep(r *Row) (*workitem.Step, error) {
	step := ID[workitem.StepID](r)
	ID[workitem.ID](r) // the owner, which is the item or the job
	s := &workitem.Step{
		ID: step, Job: ID[workitem.JobID](r), Item: ID[workitem.ID](r), Case: ID[workitem.CaseID](r), Name: r.Text(),
		Kind: workitem.StepKind(r.Text()), Target: r.Text(), Topic: r.Flag(), Input: r.JSON(), Run: int(r.Number()),
		Child: ID[workitem.CaseID](r), Copied: r.Flag(), Created: r.Time(),
		State: parsed(r, "state of a step", workitem.ParseStepState), Attempt: int(r.Number()), Due: r.Time(),
		Result: r.JSON(), Failure: r.Failure(), Ended: r.Time(),
	}
	return s, r.Err
}

// ReadMessage reads a row of [Messages].
func ReadMessage(r *Row) (*state.Message, error) {
	m := &state.Message{
		ID: ID[workitem.MessageID](r), Case: ID[workitem.CaseID](r), Name: r.Text(), Topic: r.Flag(), Value: r.JSON(),
		By: r.Text(), Sent: r.Time(), Step: ID[workitem.StepID](r), Taken: r.Time(),
	}
	return m, r.Err
}

// Definitions lists the columns that [ReadDefinition] reads.
const Definitions = "name, version, fingerprint, net, document, code, created"

// ReadDefinition reads a row of [Definitions].
func ReadDefinition(r *Row) (*store.Definition, error) {
	d := &store.Definition{Name: r.Text(), Version: r.Text(), Fingerprint: r.Text()}
	doc := r.Text()
	d.Document, d.Code, d.Created = r.JSON(), r.Flag(), r.Time()
	if r.Err != nil {
		return nil, r.Err
	}
	var err error
	d.Net, err = state.DecodeNet([]byte(doc))
	return d, err
}

package workflow

import "github.com/tasq-dev/tasq/workitem"

// GiveUp fails the task of a work item that is an incident (see workitem.Incident), and its case with it. The error wraps
// [ErrNotFound] if the item is no incident.
func GiveUp(item workitem.ID, opts ...Option) Command {
	return With(Command{Kind: KindGiveUp, Item: item}, opts...)
}

// GiveUpIncident fails the task of an incident that is about a child case, and the case of the task with it, with the failure of the child
// case. The incident is one of store.Incidents. The error wraps [ErrNotFound] if there is no such incident, and [ErrBadCommand] if it is not
// about a child case: work items have GiveUp.
func GiveUpIncident(incident workitem.JobID, opts ...Option) Command {
	return With(Command{Kind: KindGiveUpIncident, Job: incident}, opts...)
}

package workflow

import "github.com/tasq-dev/tasq/workitem"

// Suspend suspends a case and its descendants until they are resumed: jobs and timers that become due wait, and no work item can
// be started. Running work may finish, and events that are sent to the case are kept. The error wraps ErrInactive if the case has
// ended. If the case is suspended already, another reason replaces that of the suspension, with its actor and time; otherwise nothing changes.
func Suspend(id workitem.CaseID, opts ...Option) Command {
	return With(Command{Kind: KindSuspend, Case: id}, opts...)
}

// SuspendWorkflow suspends a workflow in all processes, until it is resumed: a case of it that is created from now on, also a child case,
// begins suspended, with the actor and the reason of this command. Its first work items and jobs are created, and none of them starts.
// Cases that exist are not affected; see Suspend. If the workflow is suspended already, the actor and the reason are replaced. The name is
// not checked: another process may define the workflow.
func SuspendWorkflow(name string, opts ...Option) Command {
	return With(Command{Kind: KindSuspendWorkflow, Workflow: name}, opts...)
}

// ResumeWorkflow ends the suspension of a workflow: new cases begin as usual. Cases that are suspended stay so until each is resumed; see
// Resume. It does nothing if the workflow is not suspended.
func ResumeWorkflow(name string, opts ...Option) Command {
	return With(Command{Kind: KindResumeWorkflow, Workflow: name}, opts...)
}

// Package activities is the process's answer to a change of state. An activity is not outside work (that is a job): it
// is a function that runs in the same transaction as the change it answers, sees the state that the change led to, and
// may create work items, ask for actions, schedule jobs, and use the database. If it returns an error, the change and
// all that came with it never happened.
//
// What can be answered, in the order in which a life runs through it:
//
//	case       OnInitialized, OnStarted, OnCompleted, OnFailed, OnCanceled
//	task       OnEnabled, OnStarted, OnWorkItemStateChanged, OnCompleted, OnFailed, OnCanceled, OnDisabled
//	work item  OnInitialized, OnStarted, OnCompleted, OnFailed, OnCanceled, OnReset
//
// Callbacks get an [Activation] (a task in one of its enablings), a [Change] (an activation one of whose items has
// moved), an [Item] or a [Case]. Ready-made answers are [Retry], [Timeout], [CancelAfter], [Escalate], and [All] to combine some.
//
// An action that an activity asks for ([Item.Complete] and the like) is done after the activity has returned, and after
// every activity was called for the change that this one answers. Creating a work item or a child case is done at
// once.
package activities

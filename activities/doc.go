// Package activities has the callbacks with which a process reacts to state changes, and ready-made ones: [Retry], [Resume],
// [Timeout], [CancelAfter], [Escalate], and [All] to combine them.
//
// An activity runs in the same transaction as the change that it reacts to. It sees the new state, and can create work
// items, request actions, schedule jobs, and use the database. If it returns an error, the change is rolled back with all
// its effects. (In Temporal, an activity is work outside the workflow. Here, that is a job.)
//
//	review := builder.Task(b, "review", builder.Work[Draft, Verdict]{
//		Input:                  builder.Output(draft),
//		Run:                    review,
//		OnWorkItemStateChanged: activities.Retry(retry.Exponential(5, time.Second)),
//	})
//
// The callbacks, in the order in which they are called:
//
//	case       OnInitialized, OnStarted, OnCompleted, OnFailed, OnCanceled
//	task       OnEnabled, OnStarted, OnWorkItemStateChanged, OnCompleted, OnFailed, OnCanceled, OnDisabled
//	work item  OnInitialized, OnStarted, OnCompleted, OnFailed, OnCanceled, OnReset
//
// A callback receives an [Activation] (one enabling of a task), a [Change] (an activation and the item that changed), an
// [Item] or a [Case].
//
// An action that an activity requests ([Item.Complete] and the like) runs after the activity has returned, and after
// all activities for the change were called. A work item or a child case is created at once.
package activities

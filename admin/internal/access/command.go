package access

import "github.com/tasq-dev/tasq/workflow"

// TargetOf returns the target of a command for [User.May].
func TargetOf(c *workflow.Command) string {
	switch {
	case !c.Item.IsZero():
		return c.Item.String()
	case !c.Job.IsZero():
		return c.Job.String()
	case !c.Case.IsZero():
		return c.Case.String()
	case c.Workflow != "":
		return c.Workflow
	case c.Limit != "":
		return c.Limit
	case c.Queue != "":
		return c.Queue
	}
	return c.Event
}

// Named returns the name of a user for the text of a refusal.
func Named(u *User) string {
	if u.Name == "" {
		return "this user"
	}
	return u.Name
}

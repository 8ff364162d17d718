// Package domain stores an application's business data in the transactions of the process, and validates data.
//
// A case holds the state of a process. The business data that it works on (the order, the draft, the customer) belongs in
// records of the application. A [Collection] stores typed records in the database of the engine. A record that is written
// with the DB of a callback is committed together with the state change of the process, or not at all: there is no order
// without its case and no case without its order.
//
//	var drafts = domain.Collection[workitem.ID, Draft]{Name: "drafts"}
//
//	Initialize: func(ctx context.Context, it *activities.Item, p Prompt) error {
//		return drafts.Put(ctx, it.DB(), it.ID, Draft{Prompt: p.Text})
//	},
//
// A collection is for simple keys and values. For anything else, use your own tables with the same DB, which is the same
// transaction; code that sqlc generates accepts it.
//
// # Validation
//
// Rules are declared in validate tags of package github.com/go-playground/validator/v10:
//
//	type Prompt struct {
//		Text  string   `json:"text"  validate:"required,max=4000"`
//		Words []string `json:"words" validate:"max=5,dive,alpha"` // dive: what follows is about each element
//	}
//
// [Validate] applies the rules, [Decode] applies them to JSON from outside, and [Encode] to data to be stored; each reports
// every invalid field by its JSON name. [CheckType] finds invalid tags before there is any data.
//
// Stored data is read without validation ([Restore], and every read of a collection). Rules change,
// and a record from last year must stay readable, so that it can be corrected.
package domain

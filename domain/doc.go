// Package domain is for your own business data: the records beside the process, and the rules that data must obey.
//
// A process says where a case stands. What the case is about (the order, the draft, the customer) is yours, and belongs
// in your own records, not in the state of a task. A [Collection] keeps such records, typed, in the database that the
// process runs on. Written with the [DB] that a callback is given, a record is committed together with the step of the
// process that it belongs to, or not at all: there is no order without its case and no case without its order.
//
//	var drafts = domain.Collection[workitem.ID, Draft]{Name: "drafts"}
//
//	Initialize: func(ctx context.Context, it *activities.Item, p Prompt) error {
//		return drafts.Put(ctx, it.DB(), it.ID, Draft{Prompt: p.Text})
//	},
//
// A collection is for the many cases where a key and a value are enough. Where they aren't, use tables of your own with
// the same DB: it is what sqlc generates code for, and the transaction is the same one.
//
// # Rules
//
// Rules stand where the data is declared, in validate tags of package github.com/go-playground/validator/v10:
//
//	type Prompt struct {
//		Text  string   `json:"text"  validate:"required,max=4000"`
//		Words []string `json:"words" validate:"max=5,dive,alpha"` // dive: what follows is about each element
//	}
//
// [Validate] applies them, [Decode] does so to JSON that comes from outside, and [Encode] to what is to be stored; each
// lists every field that is wrong, by its JSON name. [CheckType] finds tags that can't work before any data is there.
//
// What was stored is read back without asking the rules ([Restore], and every read of a collection). Rules change,
// and a record from last year must stay readable, so that it can be corrected.
package domain

package storetest

import (
	"slices"
	"testing"

	"github.com/tasq-dev/tasq/store"
)

// Run checks that an adapter keeps every rule of the port. The function given makes an Opener of an empty database of
// its own at every call. The store must be a [store.Killer]; an Opener that other processes can leave commands with
// should be a [Poster]. If rules are named, only those are checked.
func Run(t *testing.T, open func(t *testing.T) store.Opener, only ...string) {
	for _, r := range chosen(only) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel() // most of them wait for a disk or a server
			t.Log(r.sentence)
			r.check(NewWorld(t, open(t), 1))
		})
	}
}

func chosen(only []string) []rule {
	if len(only) == 0 {
		return rules
	}
	var all []rule
	for _, name := range only {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
		if i < 0 {
			panic("storetest has no rule " + name)
		}
		all = append(all, rules[i])
	}
	return all
}

// rule is one thing that a store has to do, in words and as a test.
type rule struct {
	name     string
	sentence string
	check    func(w *World)
}

var rules = []rule{
	{"durable", "What Update has acknowledged is there after the store was closed, and after it was killed.",
		durable},
	{"all-or-nothing",
		"If the function given to Update fails or panics, nothing of it happened, and later updates work.",
		allOrNothing},
	{"chained", "Positions in the journal rise, and each entry of a root case leads to the one before.",
		chained},
	{"history", "History lists the entries of a loaded tree that were committed before, oldest first, up to a position.", history},
	{"load",
		"Load returns the tree as its events made it, also those of the same transaction and those not yet written.",
		load},
	{"children", "A tree holds the child cases of the root case, each with its parent, in the order of their creation.",
		children},
	{"generations", "A loaded case holds the items of each task's latest activation, and all of them can be listed.",
		generations},
	{"find", "The root case of any case, item or job is found by its id, and an item too, also within its transaction.",
		find},
	{"present", "A view sees everything that was acknowledged before it, and nothing that comes after it began.",
		present},
	{"concurrent", "Views during updates see one consistent state: the tables agree with the journal.", concurrent},
	{"case-filter", "Every field of a CaseFilter selects what it says.", caseFilter},
	{"item-filter", "Every field of an ItemFilter selects what it says.", itemFilter},
	{"job-filter", "Every field of a JobFilter selects what it says.", jobFilter},
	{"journal-filter", "Every field of a JournalFilter selects what it says.", journalFilter},
	{"step-filter", "Every field of a StepFilter selects what it says.", stepFilter},
	{"message-filter", "Every field of a MessageFilter selects what it says.", messageFilter},
	{"waits", "Steps of a job come back by their owner, also within the transaction, with what waits and what was sent.", waits},
	{"pages", "Listings come in pages: the last id of one is the cursor of the next, in both directions.", pages},
	{"due-order", "Live jobs are listed in due order, and in the order of their ids where that is the same.", dueOrder},
	{"remove", "An ended root case can be removed: nothing of it is found any more, its keys are free, and a crash at " +
		"any moment finds all of it or nothing.", remove},
	{"remove-undone", "A removal is undone with its savepoint or its transaction, and takes child cases with it.",
		removeUndone},
	{"removable", "What may be removed is listed by when it may be; a job that is left to be done holds it back.",
		removable},
	{"counts", "Counts counts cases, items and jobs by workflow, task and state.", counts},
	{"backlog", "Backlog counts the live items and jobs of each queue, and the jobs that are due.", backlog},
	{"queues", "Queues counts the live items and jobs of each queue by state, up to a bound of each, and says if there are more.", queues},
	{"incidents", "The open incidents are listed in the order in which they arose, up to a bound, and what each is about.", incidents},
	{"incident-filter", "Incidents are found by the business key and the labels of their case or its root case.", incidentFilter},
	{"ended", "Ended counts what ended by hour, workflow, task and about how long it took, and every field of its filter selects what it says.",
		ended},
	{"ended-again", "A case that failed and goes on no longer counts as ended, and counts in the hour in which it ends again.", endedAgain},
	{"keys", "A command's idempotency key finds it again with its answer, also in a view; a key can be used once.", keys},
	{"key-holders", "The root case that holds a unique business key is found, also within its transaction, until it fails, is canceled or " +
		"is removed.", keyHolders},
	{"key-starts", "The root cases with a business key that were created after a time are found, also within their transaction, until they " +
		"are removed.", keyStarts},
	{"successors", "The root cases that restart a case are found by it, also within their transaction, until they are removed.", successors},
	{"savepoint", "A savepoint whose function fails is undone alone: the rest of the transaction happens.", savepoint},
	{"user-sql", "The user's own SQL is part of the transaction, and is committed and undone with it.", userSQL},
	{"user-guard", "The user's own SQL can neither end the transaction nor be used after it.", userGuard},
	{"user-view", "The user's own queries see the state of the view, and cannot write.", userView},
	{"requests", "Requests stay until they are replied to in the transaction of the command; the reply is delivered.",
		requests},
	{"limits", "Rows of limits are there after a crash, are written unless another engine did so since they were read, removed when they say nothing, and listed.",
		limits},
	{"settings", "What is set is there after a crash, replaces what was set before, and is undone with its savepoint.", settings},
	{"setting-changes", "What has changed a setting is recorded with it: it is there after a crash, undone with its savepoint or its transaction, and listed as it happened.",
		settingChanges},
	{"definitions", "Definitions come back as they were registered, once each; a case of an unknown one is refused.",
		definitions},
	{"payloads", "Large payloads, every script of the world, and times far away come back; only spaces around a " +
		"payload may be lost.", payloads},
	{"read-only", "A store that was opened for reading only shows everything and refuses to write.", readOnly},
	{"closed", "A closed store answers with an error, and closing it again is fine.", closed},
}

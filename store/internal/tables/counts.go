package tables

import "github.com/tasq-dev/tasq/store"

// ByDefinition returns the statements of [store.Counter.CountsByDefinition]. prefix precedes the names of tables.
// [ReadDefinitionCount] reads a row.
func ByDefinition(prefix string, live bool) []string {
	cases := "SELECT fingerprint, state, '', count(*) FROM " + prefix + "cases"
	if live {
		cases += " WHERE state = 'started'"
	}
	return []string{
		cases + " GROUP BY fingerprint, state",
		"SELECT c.fingerprint, '', i.task, count(*) FROM " + prefix + "work_items i JOIN " + prefix + "cases c ON c.id = i.case_id " +
			"WHERE i.state IN ('initialized', 'started') GROUP BY c.fingerprint, i.task",
	}
}

// ReadDefinitionCount reads a row of one of the statements of [ByDefinition].
func ReadDefinitionCount(r *Row) (store.DefinitionCount, error) {
	c := store.DefinitionCount{Fingerprint: r.Text(), State: r.Text(), Task: r.Text(), N: r.Number()}
	return c, r.Err
}

// ReadCount reads the columns what, workflow, task, state and n of a count.
func ReadCount(r *Row) (store.Count, error) {
	c := store.Count{What: r.Text(), Workflow: r.Text(), Task: r.Text(), State: r.Text(), N: r.Number()}
	return c, r.Err
}

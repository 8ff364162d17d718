package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// Limits returns the limits that the functions of all definitions take of, by name. Two of one name that differ are an error: each
// function would be bound by the other's numbers.
func (r *Registry) Limits() ([]limit.Limit, error) {
	type found struct {
		limit limit.Limit
		by    string
	}
	byName := make(map[string]found)
	add := func(by string, uses []workflow.Use) error {
		for _, u := range uses {
			other, known := byName[u.Limit.Name]
			if known && other.limit != u.Limit {
				return fmt.Errorf("limit %q is %v for %s, and %v for %s: give both the same definition, or another name",
					u.Limit.Name, other.limit, other.by, u.Limit, by)
			}
			byName[u.Limit.Name] = found{u.Limit, by}
		}
		return nil
	}
	for _, d := range slices.SortedFunc(maps.Values(r.byFingerprint), byNameAndVersion) {
		for i := range d.Tasks {
			if err := add(fmt.Sprintf("task %s of %s", d.Net.Task(net.TaskID(i)).Name, d.Name), d.Tasks[i].Limits); err != nil {
				return nil, err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Calls)) {
			if err := add(fmt.Sprintf("function %s of %s", name, d.Name), d.Calls[name].Limits); err != nil {
				return nil, err
			}
		}
	}
	var all []limit.Limit
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name].limit)
	}
	return all, nil
}

func byNameAndVersion(a, b *workflow.Definition) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}

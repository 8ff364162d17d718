package net

// orJoin is what is known of an or-join before any case runs.
type orJoin struct{}

func (n *Net) prepareOrJoins() {
	n.joins = make([]*orJoin, len(n.tasks))
	n.watchers = make([][]TaskID, len(n.conditions))
	n.busyWatch = make([][]TaskID, len(n.tasks))
	for t := range n.tasks {
		if n.def.Tasks[t].Join == Or {
			for c := range n.conditions {
				n.watchers[c] = append(n.watchers[c], TaskID(t))
			}
			for u := range n.tasks {
				n.busyWatch[u] = append(n.busyWatch[u], TaskID(t))
			}
		}
	}
}

func (n *Net) decideOrJoin(t TaskID, m Marking, busy Bits) Decision {
	return Decision{Enabled: true}
}

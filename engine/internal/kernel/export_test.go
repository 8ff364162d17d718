package kernel

// Room is how many steps the child cases of a command add to its bound.
func (m *Machine) Room() int { return m.agenda.room }

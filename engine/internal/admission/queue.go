package admission

// queue is what a line has while tickets wait for it, or it has reserved room for some. The methods of a nil queue are those of an empty
// one, and only Gate.queueOf makes one.
type queue[T any] struct {
	list     []*place[T] // a heap by Options.Before
	before   func(a, b *T) bool
	wanted   int64        // the total amount that waiting tickets need
	reserved []*Ticket[T] // those for which the line has reserved room

	due  int64 // when the timer fires
	stop func() bool
}

// queueOf returns the queue of a line, and creates it if necessary.
func (g *Gate[T]) queueOf(l *line[T]) *queue[T] {
	if l.queue == nil {
		l.queue = &queue[T]{before: g.o.Before}
	}
	return l.queue
}

// all returns the places of the tickets that wait, the earliest first, and the others in any order.
func (q *queue[T]) all() []*place[T] {
	if q == nil {
		return nil
	}
	return q.list
}

// late returns the tickets for which room is reserved.
func (q *queue[T]) late() []*Ticket[T] {
	if q == nil {
		return nil
	}
	return q.reserved
}

// len returns the number of tickets that wait.
func (q *queue[T]) len() int { return len(q.all()) }

// first returns the place of the earliest ticket; nil if none waits.
func (q *queue[T]) first() *place[T] {
	if q.len() == 0 {
		return nil
	}
	return q.list[0]
}

// busy reports whether a ticket waits or has a reservation.
func (q *queue[T]) busy() bool { return len(q.all())+len(q.late()) > 0 }

// amount returns how much the tickets that wait need.
func (q *queue[T]) amount() int64 {
	if q == nil {
		return 0
	}
	return q.wanted
}

func (q *queue[T]) disarm() {
	if q.stop != nil {
		q.stop()
		q.stop, q.due = nil, 0
	}
}

// Len implements heap.Interface.
func (q *queue[T]) Len() int { return len(q.list) }

// Less implements heap.Interface.
func (q *queue[T]) Less(i, j int) bool { return q.before(&q.list[i].t.Value, &q.list[j].t.Value) }

// Swap implements heap.Interface.
func (q *queue[T]) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].index, q.list[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue[T]) Push(x any) {
	p := x.(*place[T])
	p.index = len(q.list)
	q.list = append(q.list, p)
}

// Pop implements heap.Interface.
func (q *queue[T]) Pop() any {
	last := len(q.list) - 1
	p := q.list[last]
	q.list[last] = nil
	q.list = q.list[:last]
	return p
}

package storetest

import (
	"math/rand/v2"
	"testing"

	"github.com/tasq-dev/tasq/store"
)

// Run checks that an adapter keeps every rule of the port. The function given makes an Opener of an empty database of its
// own at every call.
func Run(t *testing.T, open func(t *testing.T) store.Opener) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Log(r.sentence)
			r.check(NewWorld(t, open(t), 1))
		})
	}
}

// rule is one thing that a store has to do.
type rule struct {
	name     string
	sentence string
	check    func(w *World)
}

var rules = []rule{
	{"durable", "What Update has acknowledged is there after the store was closed and opened again, and after it was killed.",
		durable},
}

func durable(w *World) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		w.Update(func(b *Batch) {
			for range 1 + rng.IntN(5) {
				b.Random(rng)
			}
		})
		switch i % 20 {
		case 7:
			w.Reopen()
		case 13:
			w.Crash()
		case 17:
			w.Check()
		}
	}
	w.Check()
	w.Crash()
	w.Check()
	w.Reopen()
	w.Check()
}

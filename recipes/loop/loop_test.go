package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/loop"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// bureau becomes better with each round.
type bureau struct{}

func (bureau) Translate(_ context.Context, r loop.Round) (loop.Translation, error) {
	return loop.Translation{Text: r.Before + "!"}, nil
}

func (bureau) Proofread(_ context.Context, t loop.Translation) (loop.Marks, error) {
	return loop.Marks{Mark: 40 + 20*len(t.Text), Remarks: "with more fire"}, nil
}

// The third round reaches 100 of 90 marks.
func Example() {
	ctx := context.Background()
	recipe := must(loop.New(bureau{}, 90, 5))
	e := must(engine.Open(ctx, sqlite.Memory(), recipe))
	defer e.Close()
	id := must(recipe.Start(ctx, e, loop.Text{Text: "Zu Hilfe", Target: "en"}))
	c := must(e.Wait(ctx, id))
	for it, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-14s %s\n", it.Label(), it.Output)
	}
	fmt.Printf("result: %s\n", c.Output)
	// Output:
	// translate.1.1  {"text":"!"}
	// proofread.1.1  {"mark":60,"remarks":"with more fire"}
	// translate.2.1  {"text":"!!"}
	// proofread.2.1  {"mark":80,"remarks":"with more fire"}
	// translate.3.1  {"text":"!!!"}
	// proofread.3.1  {"mark":100,"remarks":"with more fire"}
	// result: {"text":"!!!"}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func TestAPersonFinishesWhatIsStillNotGoodEnough(t *testing.T) {
	recipe, err := loop.New(bureau{}, 90, 2)
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, loop.Text{Text: "Zu Hilfe", Target: "en"})
	require.NoError(t, err)
	e.Drain()
	last, err := recipe.Finish.InputOf(e.Item(id, "finish"))
	require.NoError(t, err)
	require.Equal(t, "!!", last.Text)
	enginetest.CompleteItem(e, id, "finish", loop.Translation{Text: "Help!"})
	require.Equal(t, []string{
		"translate.1.1 completed", "proofread.1.1 completed", "translate.2.1 completed", "proofread.2.1 completed",
		"finish.1.1 completed",
	}, e.States(id))
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"Help!"}`, string(c.Output))
}

func TestEachRoundKnowsTheRemarksOnTheOneBefore(t *testing.T) {
	recipe, err := loop.New(bureau{}, 90, 5)
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, loop.Text{Text: "Zu Hilfe", Target: "en"})
	require.NoError(t, err)
	e.Drain()
	var rounds []loop.Round
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id, Task: "translate"}) {
		require.NoError(t, err)
		var r loop.Round
		require.NoError(t, json.Unmarshal(it.Input, &r))
		rounds = append(rounds, r)
	}
	text := loop.Text{Text: "Zu Hilfe", Target: "en"}
	require.Equal(t, []loop.Round{
		{Text: text, Number: 1},
		{Text: text, Number: 2, Before: "!", Remarks: "with more fire"},
		{Text: text, Number: 3, Before: "!!", Remarks: "with more fire"},
	}, rounds)
}

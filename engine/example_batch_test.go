package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/retry"
)

func Example_batch() {
	ctx := context.Background()

	index := builder.MustBatch("index", 100, 500*time.Millisecond,
		func(ctx context.Context, docs []string) ([]builder.Outcome[int], error) {
			list := make([]builder.Outcome[int], len(docs))
			for i, doc := range docs {
				if list[i].Value = len(doc); doc == "" {
					list[i].Err = errors.New("the document is empty")
				}
			}
			fmt.Println("one call for", len(docs), "documents")
			return list, nil
		},
		builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }),
	)

	e := example(ctx, index)
	defer e.Close()
	var runs []builder.Run[int]
	for _, doc := range []string{"Petri nets", "", "workflows"} {
		run, err := index.Run(ctx, e, doc)
		if err != nil {
			panic(err)
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		size, err := run.Result(ctx, e)
		fmt.Println(size, err != nil)
	}

	// Output:
	// one call for 3 documents
	// 10 false
	// 0 true
	// 9 false
}

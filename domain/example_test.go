package domain_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	_ "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/domain"
)

type Draft struct {
	Title string `json:"title" validate:"required,max=80"`
	Words int    `json:"words" validate:"gte=0"`
}

var drafts = domain.Collection[string, Draft]{Name: "drafts"}

// In a callback of a process the DB is the one that it is given. Here it is a database of its own.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	if _, err := db.Exec(domain.Schema); err != nil {
		log.Fatal(err)
	}

	for _, d := range []Draft{{"Petri nets", 900}, {"Queues", 400}, {"Queues, again", 0}} {
		if err := drafts.Put(ctx, db, "ann/"+d.Title, d); err != nil {
			log.Fatal(err)
		}
	}
	err = drafts.Update(ctx, db, "ann/Queues", func(d *Draft) error {
		d.Words += 50
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range drafts.List(ctx, db, domain.Query[string]{Prefix: "ann/Q", Limit: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Key, e.Value.Words)
	}
	_, err = drafts.Get(ctx, db, "bob/Queues")
	fmt.Println(err, errors.Is(err, domain.ErrNotFound))
	// Output:
	// ann/Queues 450
	// ann/Queues, again 0
	// get drafts "bob/Queues": not found true
}

func ExampleValidate() {
	err := domain.Validate(Draft{Words: -1})
	fmt.Println(err)
	if invalid, ok := errors.AsType[*domain.InvalidError](err); ok {
		for _, f := range invalid.Fields {
			fmt.Printf("%s breaks %s\n", f.Path, f.Rule)
		}
	}
	// Output:
	// invalid domain_test.Draft: title: required; words: gte=0
	// title breaks required
	// words breaks gte
}

func ExampleDecode() {
	draft, err := domain.Decode[Draft]([]byte(`{"title": "Petri nets", "words": 900}`))
	fmt.Println(draft, err)
	_, err = domain.Decode[Draft]([]byte(`{"title": "Petri nets", "wrods": 900}`))
	fmt.Println(err)
	// Output:
	// {Petri nets 900} <nil>
	// invalid domain_test.Draft: unknown field "wrods"; did you mean "words"? The fields are title, words
}

func ExampleRestore() {
	old := []byte(`{"title": "", "author": "ann"}`) // from before titles were required, and authors dropped
	draft, err := domain.Restore[Draft](old)
	fmt.Printf("%+v %v\n", draft, err)
	// Output: {Title: Words:0} <nil>
}

func ExampleCheckType() {
	type Order struct {
		Email string `validate:"required,emial"`
	}
	fmt.Println(domain.CheckType[Order]())
	// Output: field Email of domain_test.Order: rule "emial" can't work: Undefined validation function 'emial'
}

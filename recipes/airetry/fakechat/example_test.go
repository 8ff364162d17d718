package fakechat_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/recipes/airetry/fakechat"
)

func ExampleStart() {
	server, err := fakechat.Start(fakechat.Options{Seed: 2, Words: 6})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client := &chat.Client{BaseURL: server.URL(), Model: server.Model()}
	reply, err := client.Complete(context.Background(), "Tell me about the rabbit.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
	// Output:
	// Rabbit actually took a watch to happen next.
}

// One script for one prompt: the first two requests with it fail, the third is answered.
func Example_promptScript() {
	server, err := fakechat.Start(fakechat.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client := &chat.Client{BaseURL: server.URL(), Model: server.Model()}
	for range 3 {
		_, err := client.Complete(context.Background(), "A tale of curiosity, please. [[limit 2s, cut]]")
		if e, ok := errors.AsType[*chat.Error](err); ok {
			fmt.Println(e.Code, "- again after", e.RetryAfter)
			continue
		}
		fmt.Println("answered")
	}
	// Output:
	// rate_limit_exceeded - again after 2s
	// cut_short - again after 0s
	// answered
}

func ExampleParseFaults() {
	faults, err := fakechat.ParseFaults("limit 2s, cut, ok, hang 5s")
	fmt.Println(len(faults), faults[0].Wait, faults[1], err)

	_, err = fakechat.ParseFaults("limit 2s, cut 1s")
	fmt.Println(err)
	// Output:
	// 4 2s cut <nil>
	// fault "cut 1s": cut takes no time; only limit, hang and slow do
}

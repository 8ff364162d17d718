package chat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/tasq-dev/tasq/recipes/airetry/chat"
)

var quiet = log.New(io.Discard, "", 0)

func ExampleClient_Complete() {
	server := httptest.NewServer(says(http.StatusOK,
		`{"model": "tiny", "choices": [{"message": {"content": "One picture shows it all."}}]}`))
	defer server.Close()

	client := &chat.Client{BaseURL: server.URL, Model: "tiny"}
	reply, err := client.Complete(context.Background(), "Why Petri nets?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
	// Output: One picture shows it all.
}

// A retry policy asks two things of an error: whether, and when.
func ExampleError() {
	server := httptest.NewServer(says(http.StatusTooManyRequests,
		`{"error": {"message": "20 requests a minute", "code": "rate_limit_exceeded"}}`, "Retry-After: 3"))
	defer server.Close()

	client := &chat.Client{BaseURL: server.URL, Model: "tiny"}
	_, err := client.Complete(context.Background(), "Why Petri nets?")
	if e, ok := errors.AsType[*chat.Error](err); ok {
		fmt.Println(e.Status, e.Code)
		fmt.Println("again:", e.Temporary, "after", e.RetryAfter)
	}
	// Output:
	// 429 rate_limit_exceeded
	// again: true after 3s
}

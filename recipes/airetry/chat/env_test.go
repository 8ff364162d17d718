package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/recipes/airetry/chat"
)

func TestFromEnv(t *testing.T) {
	set := func(t *testing.T, base, key, model string) (*chat.Client, error) {
		t.Setenv(chat.EnvBaseURL, base)
		t.Setenv(chat.EnvKey, key)
		t.Setenv(chat.EnvModel, model)
		return chat.FromEnv()
	}

	c, err := set(t, "http://127.0.0.1:8080/v1", "", "small")
	require.NoError(t, err, "a local server needs no key")
	require.Equal(t, &chat.Client{BaseURL: "http://127.0.0.1:8080/v1", Model: "small"}, c)

	c, err = set(t, "", " sk-1\n", "large")
	require.NoError(t, err)
	require.Equal(t, &chat.Client{BaseURL: "https://api.openai.com/v1", Key: "sk-1", Model: "large"}, c)

	_, err = set(t, "", "", "large")
	require.ErrorIs(t, err, chat.ErrNotConfigured)

	_, err = set(t, "http://u:secret@h/v1", "sk-1", "")
	require.EqualError(t, err, "chat endpoint http://h/v1: no model: set OPENAI_MODEL")
	require.NotErrorIs(t, err, chat.ErrNotConfigured, "it is meant to work, so nobody should fall back to a fake")
}

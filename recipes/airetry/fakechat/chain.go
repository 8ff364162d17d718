package fakechat

import (
	_ "embed"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sample is the opening of "Alice's Adventures in Wonderland" by Lewis Carroll, London 1865, which is in the public
// domain; spelling and punctuation are slightly modernised.
//
//go:embed alice.txt
var sample string

// chain is a Markov chain of words. It remembers no probabilities but the text itself: the words that may follow "the"
// are those that stand after each "the" of the text, so that a place drawn at random draws each as often as it occurs.
type chain struct {
	words  []string         // the text without quotes and brackets, which would not come in pairs
	after  map[string][]int // by word: the places of its successors
	known  map[string][]int // by word in lower case and without punctuation: its own places
	starts []int            // the places of first words of a sentence
}

func newChain(text string) (*chain, error) {
	c := &chain{after: map[string][]int{}, known: map[string][]int{}}
	for _, w := range strings.Fields(text) {
		if w = strings.Trim(w, "\"()[]{}_*“”"); plain(w) != "" {
			c.words = append(c.words, w)
		}
	}
	if len(c.words) == 0 {
		return nil, errors.New("the sample text has no words")
	}
	before := c.words[len(c.words)-1] // the text is a ring, so every word has a successor
	for i, w := range c.words {
		c.after[before] = append(c.after[before], i)
		c.known[plain(w)] = append(c.known[plain(w)], i)
		if i == 0 || ends(before) {
			c.starts = append(c.starts, i)
		}
		before = w
	}
	return c, nil
}

// say makes a text of about n words, which is a function of the seed and the prompt. It begins with a known word of the
// prompt, see subject, and ends with a sentence, or after twice as many words.
func (c *chain) say(seed uint64, prompt string, n int) string {
	r := random(seed, prompt)
	from := c.subject(prompt)
	if len(from) == 0 {
		from = c.starts
	}
	var text []string
	for at := pick(r, from); ; at = pick(r, c.after[c.words[at]]) {
		text = append(text, c.words[at])
		if len(text) >= n && ends(c.words[at]) || len(text) >= 2*n {
			break
		}
	}
	return sentence(strings.Join(text, " "))
}

// subject is where the longest known word of the prompt stands in the sample, or nowhere. Long words are mostly what a
// prompt is about: of "Tell me about the rabbit" it takes "rabbit". The first of equals wins.
func (c *chain) subject(prompt string) (places []int) {
	longest := ""
	for _, w := range strings.Fields(prompt) {
		if w = plain(w); len(w) > len(longest) && c.known[w] != nil {
			longest, places = w, c.known[w]
		}
	}
	return places
}

func pick(r *rand.Rand, from []int) int { return from[r.IntN(len(from))] }

// random is a source that depends on its arguments alone. The order in which requests arrive is not among them, so
// that concurrent work is as repeatable as work in line.
func random(seed uint64, key string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// plain is a word as it is compared: "Rabbit," is "rabbit".
func plain(w string) string {
	return strings.ToLower(strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
}

// ends reports whether a word closes a sentence.
func ends(w string) bool {
	return strings.HasSuffix(w, ".") || strings.HasSuffix(w, "!") || strings.HasSuffix(w, "?")
}

// sentence gives a text a capital letter and a full stop.
func sentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[size:]
	if !ends(s) {
		s = strings.TrimRight(s, ",;:-") + "."
	}
	return s
}

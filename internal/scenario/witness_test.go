package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/store/sqlite"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// replay runs a witness in the real engine: everything must come out as the file says, and show what the finding
// claims.
func replay(t *testing.T, text []byte, f verify.Finding) {
	t.Helper()
	file, err := Parse("witness.txt", text)
	require.NoError(t, err, string(text))
	result, err := Run(context.Background(), file, sqlite.Memory())
	require.NoError(t, err)
	require.NoError(t, result.Broken)
	for _, m := range result.Mismatches {
		require.Fail(t, "the engine does not do what the witness says", "%v\n%s\n%s", m.Command.Words, m.Diff, text)
	}
	printed := map[string][]string{} // by command; the last time counts
	for i, c := range file.Commands {
		printed[strings.Join(c.Words, " ")] = result.Outputs[i]
	}
	claim := []string{}
	for _, m := range f.Witness.Marking {
		claim = append(claim, fmt.Sprintf("%s %d", m.Condition, m.Count))
	}
	switch f.Code {
	case verify.ImproperCompletion:
		require.Equal(t, []string{"completed"}, printed["show case"])
		require.Subset(t, printed["show marking"], claim)
		leftovers := len(printed["show marking"]) > 1 || !strings.HasSuffix(printed["show marking"][0], " 1")
		require.True(t, leftovers || len(f.Witness.Busy) > 0, string(text))
	case verify.NoOptionToComplete:
		require.Equal(t, []string{"started"}, printed["show case"])
		require.Subset(t, printed["show marking"], claim)
	case verify.Unbounded:
		var seen []string
		for i, c := range file.Commands {
			if strings.Join(c.Words, " ") == "show marking" {
				seen = append(seen, tokensIn(result.Outputs[i], f.Subject))
			}
		}
		require.Len(t, seen, 1+min(1, f.Witness.Repeats))
		require.True(t, len(seen) == 1 || len(seen[0]) < len(seen[1]) || seen[0] < seen[1], string(text))
	case verify.Unsafe:
		require.GreaterOrEqual(t, tokensIn(printed["show marking"], f.Subject), "2")
	}
}

// tokensIn is how many tokens a condition has, as it is shown.
func tokensIn(lines []string, condition string) string {
	for _, l := range lines {
		if name, tokens, _ := strings.Cut(l, " "); name == condition {
			return tokens
		}
	}
	return "0"
}

// replayAll replays every finding of a net that has a witness, and counts them by code.
func replayAll(t *testing.T, def *net.Definition, seen map[net.Code]int) {
	t.Helper()
	n, err := net.Compile(def)
	require.NoError(t, err)
	for _, f := range verify.Net(n, verify.Options{States: 5000}).Findings {
		text, err := Witness(def, f)
		if f.Witness == nil {
			require.ErrorIs(t, err, ErrNoWitness)
			continue
		}
		require.NoError(t, err, Format([]*Workflow{{Def: def}}))
		seen[f.Code]++
		if len(f.Witness.Busy) > 0 {
			seen["busy"]++
		}
		replay(t, text, f)
	}
}

// witnessNets are nets with every kind of finding, and with everything in the way of replaying one; a semicolon ends a
// line.
var witnessNets = map[string]string{
	"improper":       "task A;task B;task C join=xor;flow s -> A;flow A -> B, C;flow B -> C;flow C -> e",
	"several at end": "task A;task B;flow s -> A;flow A -> e, B;flow B -> e",
	"busy at the end": "task A;task B;task C join=xor;flow s -> A;flow A -> B, C;flow B -> C;flow C -> e;" +
		"cancel C: A->B, B->C",
	"stuck": "task A split=xor;task B;task C;flow s -> A;flow A -> B, C;flow B -> C;flow C -> e",
	"stuck at once": "condition p q;task A split=xor;task C;flow s -> A;flow A -> p, q;flow p -> C;" +
		"flow q -> C;flow C -> e",
	"for ever": "condition c d;task A split=xor;task B;task D;task E;flow s -> A;flow A -> e, c, d;" +
		"flow c -> B, E;flow d -> D, E;flow B -> c;flow D -> d;flow E -> e",
	"unbounded": "condition c h;task A;task B split=xor;task P;task Q;flow s -> A;flow A -> c, h;" +
		"flow c -> B;flow B -> P, Q;flow P -> c, h;flow Q -> e;flow h -> Q",
	"two stages": "condition c d h k;task A;task P;task Q;task R;task Z;flow s -> A;flow A -> c;" +
		"flow c -> P, Q;flow P -> c, h;flow Q -> d;flow d -> R, Z;flow h -> R;flow R -> d, k;" +
		"flow k -> Z;flow Z -> e",
	"routing":           "dummy A;dummy B;task C join=xor;flow s -> A;flow A -> B, C;flow B -> C;flow C -> e",
	"routing that ends": "task A;dummy B;dummy C join=xor;flow s -> A;flow A -> B, C;flow B -> C;flow C -> e",
	"routing choice":    "dummy A split=xor;task B;task C;flow s -> A;flow A -> B, C;flow B -> C;flow C -> e",
	"routing left over": "task A;dummy B;task C;task D join=xor;flow s -> A;flow A -> e, B;flow B -> C;" +
		"flow C -> D;flow D -> e",
	"shared routing": "condition p;task A;dummy B;dummy C;task D;flow s -> A;flow A -> p;flow p -> B, C;" +
		"flow B -> D;flow C -> D;flow D -> e",
	"or-split": "task A split=or;task B;task C;task D;flow s -> A;flow A -> B, C, e;flow B -> D;" +
		"flow C -> D;flow D -> e",
	"or-join": "task A;task B;task C;task D join=or;task E join=xor;flow s -> A;flow A -> B, C;" +
		"flow B -> D, E;flow C -> D;flow D -> E;flow E -> e",
	"region": "task A;task B;task C;task D;flow s -> A;flow A -> B, C;flow B -> D;flow C -> D;" +
		"flow D -> e;cancel B: C",
	"composite": "task A;composite B of w,v;task C join=xor;flow s -> A;flow A -> B, C;flow B -> C;" +
		"flow C -> e",
	"dead": "condition p q;task A split=xor;task B join=or;task C;flow s -> A;flow A -> p, q;" +
		"flow p -> B, C;flow q -> B, C;flow C -> B;flow B -> e",
}

func witnessNet(t *testing.T, body string) *net.Definition {
	t.Helper()
	parsed, err := ParseNotation(net.Pos{}, "workflow w\nstart s\nend e\n"+strings.ReplaceAll(body, ";", "\n"))
	require.NoError(t, err)
	return parsed[0].Def
}

func TestWitnessesRunInTheEngine(t *testing.T) {
	seen := map[net.Code]int{}
	for name, body := range witnessNets {
		t.Run(name, func(t *testing.T) { replayAll(t, witnessNet(t, body), seen) })
	}
	for _, code := range []net.Code{verify.ImproperCompletion, verify.NoOptionToComplete, verify.Unbounded, "busy"} {
		require.Positive(t, seen[code], code)
	}
}

// What a witness file looks like.
func TestWitnessFile(t *testing.T) {
	def := witnessNet(t, witnessNets["improper"])
	text, err := Witness(def, verify.Net(net.MustCompile(def), verify.Options{}).Findings[0])
	require.NoError(t, err)
	require.Equal(t, `# improper-completion: a case can complete while work is left over: "A->B"

define
workflow w
  start s
  end e
  task A
  task B
  task C join=xor
  flow s -> A
  flow A -> B, C
  flow B -> C
  flow C -> e
----
ok

start w
----
ok

do A
----
ok

do C
----
ok

# The case is over, and work is left over.
show case
----
completed

show marking
----
e 1
A->B 1

`, string(text))
}

func TestWitnessesThatCannotBeWritten(t *testing.T) {
	def := witnessNet(t, witnessNets["improper"])
	f := verify.Net(net.MustCompile(def), verify.Options{}).Findings[0]
	renamed := *def
	renamed.Name = "the claims"
	_, err := Witness(&renamed, f)
	require.ErrorContains(t, err, `"the claims" is not a name in the notation`)
	_, err = Witness(&net.Definition{}, f)
	require.ErrorContains(t, err, "no-start")

	lie := *f.Witness
	lie.Marking = []verify.Tokens{{Condition: "e", Count: 2}}
	f.Witness = &lie
	_, err = Witness(def, f)
	require.ErrorContains(t, err, `does not lead to 2 tokens in "e"`)
	for _, step := range []verify.Step{{Task: "none"}, {Task: "B"}, {Task: "A", Moment: verify.Completes},
		{Task: "A", Outputs: []string{"s"}}} {
		lie.Steps = []verify.Step{step}
		_, err = Witness(def, f)
		require.ErrorContains(t, err, step.Task)
	}
}

// grown draws a net at random: a chain of tasks from the start to the end, with flows across it, forward and back, all
// kinds of gates, routing tasks and regions. Most such nets are unsound in one way or another.
func grown(rng *rand.Rand) *net.Definition {
	n := 3 + rng.IntN(6)
	d := &net.Definition{Name: "w", Conditions: []net.Condition{{Name: "s", Role: net.Start}, {Name: "e", Role: net.End}}}
	name := func(i int) string { return fmt.Sprintf("t%d", i) }
	gates := []net.Rule{net.And, net.Xor, net.Or}[:2+rng.IntN(2)]
	rare := 2 + rng.IntN(10)
	for i := range n {
		t := net.Task{Name: name(i), Join: gates[rng.IntN(len(gates))], Split: gates[rng.IntN(len(gates))]}
		if i > 0 && rng.IntN(5) == 0 {
			t.Kind = net.Routing
		}
		if rng.IntN(rare) == 0 {
			t.Cancels = []string{name(rng.IntN(n))}
		}
		d.Tasks = append(d.Tasks, t)
	}
	flow := func(from, to string) {
		if rng.IntN(4) == 0 && from != "s" && to != "e" {
			c := fmt.Sprintf("c%d", rng.IntN(3))
			if !strings.Contains(fmt.Sprint(d.Conditions), "{"+c+" ") {
				d.Conditions = append(d.Conditions, net.Condition{Name: c})
			}
			d.Flows = append(d.Flows, net.Flow{From: from, To: c}, net.Flow{From: c, To: to})
			return
		}
		d.Flows = append(d.Flows, net.Flow{From: from, To: to})
	}
	flow("s", name(0))
	for i := range n - 1 {
		flow(name(i), name(i+1))
	}
	flow(name(n-1), "e")
	for range rng.IntN(5) {
		flow(name(rng.IntN(n)), name(1+rng.IntN(n-1)))
	}
	return d
}

// Random unsound nets: every witness runs in the real engine, and ends as it claims.
func TestRandomWitnessesRunInTheEngine(t *testing.T) {
	nets := testsize.Pick(25, 80, 4000)
	seen := map[net.Code]int{}
	for seed := range uint64(nets) {
		def := grown(rand.New(rand.NewPCG(seed, 7)))
		if _, err := net.Compile(def); err != nil {
			continue
		}
		replayAll(t, def, seen)
	}
	t.Log(seen)
	for _, code := range []net.Code{verify.ImproperCompletion, verify.NoOptionToComplete, verify.Unbounded} {
		require.Positive(t, seen[code], code)
	}
}

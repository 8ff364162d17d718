package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/recipes/onboarding"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The defaults of [OnboardingOptions].
const (
	DefaultOnboardingDB = "tasq-onboarding.db"
	DefaultListen       = "127.0.0.1:0"  // of the webhook: a free port
	DefaultTimeout      = 24 * time.Hour // for the verification of the address
)

// modelFailures is the number of calls that the model refuses.
const modelFailures = 2

// OnboardingOptions configure the demo of an onboarding. The zero value runs it without input.
type OnboardingOptions struct {
	Setting
	// Interactive lets the user send the event: the demo prints a command that sends it, and the address of a webhook
	// that does. Otherwise the demo sends it after a moment.
	Interactive bool
	// Listen is the address of the webhook, for Interactive. Default: [DefaultListen].
	Listen string
	// Timeout is how long a case waits for the event. Default: [DefaultTimeout]. It does not change a wait that has
	// begun.
	Timeout time.Duration
}

// RunOnboarding runs the recipe onboarding on a file: a welcome mail, a wait for an event, a model that is busy twice,
// a pause, an account. It continues the cases that are running in the file, starts one if there is none, and returns
// when they have ended. When the context ends, it stops at once and returns the error of the context; the cases stay in
// the file.
func RunOnboarding(ctx context.Context, out io.Writer, o OnboardingOptions) error {
	o.DB, o.Listen = cmp.Or(o.DB, DefaultOnboardingDB), cmp.Or(o.Listen, DefaultListen)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Timeout < 0 {
		return fmt.Errorf("%w: a timeout of %s is over before it begins; give more than 0", ErrUsage, o.Timeout)
	}
	steps := &onboardingDemo{o: o}
	if o.Interactive {
		hook, err := listen(o.Listen)
		if err != nil {
			return err
		}
		steps.hook = hook
		defer hook.close()
	}
	p := &process{Setting: o.Setting, stepDemo: steps, name: "onboarding", out: out}
	return p.run(ctx)
}

// onboardingDemo implements stepDemo and onboarding.World.
type onboardingDemo struct {
	o        OnboardingOptions
	services *services
	signUp   *builder.Workflow[onboarding.Person]
	asked    workitem.StepID // the wait for which the event was announced or sent
	hook     *hook           // nil if it is not Interactive
}

func (p *onboardingDemo) workflow(w *services) (_ engine.Workflow, err error) {
	p.services = w
	p.signUp, err = onboarding.New(p, onboarding.Times{
		Verify: p.o.Timeout, Pause: p.o.waits(2 * time.Second), Retry: retry.Exponential(4, p.o.waits(time.Second)),
	})
	return p.signUp, err
}

func (p *onboardingDemo) start(ctx context.Context, e *engine.Engine) (workitem.CaseID, error) {
	person := onboarding.Person{ID: "u-" + rand.Text()[:6], Email: "ann@example.com"}
	return p.signUp.Start(ctx, e, person, workflow.By("demo"))
}

func (p *onboardingDemo) title(input json.RawMessage) (about, title string) {
	o, err := domain.Restore[onboarding.Person](input)
	if err != nil {
		return "", string(input)
	}
	return o.ID, fmt.Sprintf("%s signs up as %s", o.Email, o.ID)
}

func (p *onboardingDemo) parts() []part {
	return []part{
		{onboarding.StepLink, ""}, {onboarding.StepWelcome, "mail server"}, {onboarding.Verified, ""},
		{onboarding.StepGenerate, "model"}, {onboarding.StepPause, ""}, {onboarding.StepComplete, ""},
	}
}

// Welcome implements onboarding.World. Its calls have idempotency keys.
func (p *onboardingDemo) Welcome(ctx context.Context, l onboarding.Letter) error {
	_, err := p.services.call(ctx, call{Party: "mail server", About: l.Person.ID, Key: l.Key}, idempotent("m-"))
	return err
}

// Generate implements onboarding.World.
func (p *onboardingDemo) Generate(ctx context.Context, o onboarding.Person) (string, error) {
	c, err := p.services.call(ctx, call{Party: "model", About: o.ID},
		failFirst(modelFailures, "Welcome! This is where to begin."))
	if err == nil && !c.Did {
		err = workitem.Failf("overloaded", "too many people sign up just now")
	}
	return c.Says, err
}

func (p *onboardingDemo) result(s *workitem.Step, about string) string {
	switch s.Name {
	case onboarding.StepLink:
		return "it holds a token that serves once"
	case onboarding.StepWelcome:
		if called, n := p.services.log.count("mail server", about); called > 1 {
			return fmt.Sprintf("mailed (called %s, mailed %s)", times(called), times(n))
		}
		return "mailed"
	case onboarding.StepGenerate:
		content, err := domain.Restore[string](s.Result)
		if err != nil {
			return string(s.Result)
		}
		return brief(content, 40)
	case onboarding.StepPause:
		return "over"
	case onboarding.StepComplete:
		return "the account is saved"
	}
	return ""
}

// live sends the event, or prints how to send it, once the function waits for it.
func (p *onboardingDemo) live(ctx context.Context, demo *process, s *progress) error {
	r := s.row(onboarding.Verified)
	if r.step == nil || r.step.State != workitem.StepWaiting || r.step.ID == p.asked {
		return nil
	}
	p.asked = r.step.ID
	if p.o.Interactive {
		return p.invite(demo, s)
	}
	demo.clock.AfterFunc(demo.pace(1500*time.Millisecond), func() {
		_, err := demo.engine.Do(ctx, workflow.Send(s.id, onboarding.Verified, nil, workflow.By("demo")))
		if err != nil && ctx.Err() == nil {
			demo.err <- err
		}
	})
	return nil
}

// invite prints how to send the event.
func (p *onboardingDemo) invite(demo *process, s *progress) error {
	token := ""
	if r := s.row(onboarding.StepLink); r.step != nil {
		if err := json.Unmarshal(r.step.Result, &token); err != nil {
			return err
		}
	}
	p.hook.serve(demo.engine)
	demo.printBetween(fmt.Sprintf(`The function waits for the event %[1]s, and is not in memory.
Send it in another terminal,
  tasq event send %[2]s %[1]s -d %[3]s
or follow the link of the mail, which serves once,
  curl -i -X POST %[4]s
`, onboarding.Verified, s.id, printable.Word(database.Of(p.o.DB).Name()), p.hook.url(token)))
	return nil
}

func (p *onboardingDemo) summary(ctx context.Context, e *engine.Engine, s *progress) (string, error) {
	has := false
	err := e.View(ctx, func(r store.Reader) (err error) {
		has, err = onboarding.Accounts.Has(ctx, r.DB(), s.about)
		return err
	})
	_, mailed := p.services.log.count("mail server", s.about)
	called, _ := p.services.log.count("model", s.about)
	account := "there is no account"
	if has {
		account = "there is an account"
	}
	text := fmt.Sprintf("%s got %s, the model was called %s, and %s.", strings.SplitN(s.title, " ", 2)[0],
		count(mailed, "mail"), times(called), account)
	return text, err
}

func (p *onboardingDemo) explore(id workitem.CaseID) []string {
	return []string{
		fmt.Sprintf("tasq events -d %s --case %s", printable.Word(database.Of(p.o.DB).Name()), id),
		recordsOf(p.o.DB, onboarding.Accounts.Name),
	}
}

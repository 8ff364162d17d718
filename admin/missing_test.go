package admin_test

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// deskOf is a version of a workflow whose task becomes an incident.
func deskOf(version string) *builder.Workflow[any] {
	b := builder.New[any]("desk", builder.Version(version))
	b.Path(b.Start(), builder.Task(b, "check", builder.Work[any, any]{Policy: workitem.Incident(workitem.Default()), Queue: version}), b.End())
	return b.MustBuild()
}

// failsAtOnce is a function without further attempts.
func failsAtOnce(name string, opts ...builder.FuncOption) *builder.FuncRef[int, int] {
	opts = append(opts, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	return builder.MustFunc(name, func(context.Context, int) (int, error) { return 0, workitem.Failf("broken", "it is broken") }, opts...)
}

// holderOf is a workflow whose task holds the failed child case as an incident.
func holderOf(name string, child *builder.Workflow[int]) *builder.Workflow[int] {
	b := builder.New[int](name)
	b.Path(b.Start(), builder.Composite(b, "parts", child, builder.Cases[int]{Input: builder.CaseInput(b), Policy: workitem.Incident(workitem.Default())}), b.End())
	return b.MustBuild()
}

// reopened opens an engine with all workflows, has it do something, and opens it again with some of them.
func reopened(t *testing.T, all, some []engine.Workflow, before func(o *office)) *office {
	t.Helper()
	o := &office{bulk: bulk.New(engine.Code)}
	o.Engine = enginetest.New(t, append(all, o.bulk)...)
	before(o)
	o.Drain()
	o.Crash(append(some, o.bulk)...)
	o.bulk.Serve(o.Engine)
	t.Cleanup(func() { o.Crash(append(all, o.bulk)...) })
	return o
}

// Of incidents by one cause, only those can be retried whose definition an open program has. The others are not offered for it: neither by
// themselves, nor ticked, nor with all of the group; and what is missing is said.
func TestIncidentsWithoutTheirDefinitionAreNotOffered(t *testing.T) {
	t.Parallel()
	one, two := deskOf("1"), deskOf("2")
	var old workitem.CaseID
	o := reopened(t, []engine.Workflow{one, two}, []engine.Workflow{two}, func(o *office) {
		for _, w := range []*builder.Workflow[any]{one, two, two} {
			id, err := w.Start(t.Context(), o, nil)
			require.NoError(t, err)
			o.FailItem(id, "check", &workitem.Failure{Code: "no-funds", Message: "text"})
			if w == one {
				old = id
			}
		}
	})
	h := o.handler(admin.Config{Access: as("eve")})
	page := get(h, "/incidents").Body.String()
	require.Equal(t, 2, strings.Count(page, `&amp;kind=retry">Retry…`), page)
	require.Equal(t, 2, strings.Count(page, `type="checkbox" name="ids"`))
	require.Contains(t, page, "1 of these cannot be retried: no open engine has workflow desk 1.")
	form := "/bulk?kind=retry&workflow=desk&task=check&incident=attempts&code=no-funds"
	body := get(h, form).Body.String()
	require.Contains(t, body, "Retry: 2 incidents")
	require.Contains(t, body, "Left out: 1 incident, which needs workflow desk 1. No open engine has it: open a program with it.")
	counted := commandTo(h, "/api/v1/bulk", `{"kind":"retry","filter":{"workflow":["desk"]},"count":true}`)
	require.Contains(t, counted.Body.String(), `"targets":2,"missing":1`)
	w := submit(t, h, form, "confirm", "2")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()
	require.Contains(t, get(h, w.Header().Get("Location")).Body.String(), "2 of 2 are done, and 0 refused.")

	page = get(h, "/incidents?workflow=desk&code=no-funds").Body.String()
	require.Empty(t, formLinks(t, page))
	require.NotContains(t, page, "/bulk?kind=")
	require.NotContains(t, page, `type="checkbox" name="ids"`)
	require.Contains(t, page, "This cannot be retried: no open engine has workflow desk 1. Open a program with it.")
	require.Contains(t, get(h, form).Body.String(), "This cannot be done at the moment")
	none := commandTo(h, "/api/v1/bulk", `{"kind":"retry","filter":{"workflow":["desk"]}}`)
	require.Equal(t, http.StatusNotFound, none.Code, none.Body)
	require.Contains(t, none.Body.String(), "no open engine has workflow desk 1")
	body = get(h, "/bulk?kind=cancel&state=started&workflow=desk").Body.String()
	require.Contains(t, body, "Cancel the case: 2 cases")
	require.Contains(t, body, "Left out: 1 case, which needs workflow desk 1.")
	fingerprint := one.Untyped().Fingerprint
	page = get(h, "/cases?state=started&fingerprint="+fingerprint).Body.String()
	require.Contains(t, page, "No open engine has workflow desk 1")
	require.Contains(t, page, "Suspend all that match")
	require.NotContains(t, page, "Cancel all that match")
	require.Contains(t, get(h, "/cases/"+old.String()).Body.String(), "No open engine has workflow desk 1")
}

// A failed child case is not resumed without the definition of the case above it, and the task that holds it is not given up. Another one, which
// has its definition, is.
func TestIncidentsOfChildCasesWithoutADefinition(t *testing.T) {
	t.Parallel()
	part, other := failsAtOnce("part"), failsAtOnce("other")
	whole, gone := holderOf("whole", part.Workflow), holderOf("gone", other.Workflow)
	var held, left workitem.CaseID
	o := reopened(t, []engine.Workflow{whole, gone}, []engine.Workflow{whole, other}, func(o *office) {
		var err error
		held, err = whole.Start(t.Context(), o, 1)
		require.NoError(t, err)
		left, err = gone.Start(t.Context(), o, 1)
		require.NoError(t, err)
	})
	h := o.handler(admin.Config{Access: as("eve")})
	page := get(h, "/incidents?workflow=gone&kind=case").Body.String()
	require.Empty(t, formLinks(t, page))
	require.NotContains(t, page, "/bulk?")
	require.Contains(t, page, "This cannot be retried: no open engine has workflow gone. Open a program with it.")
	body := get(h, "/cases/"+left.String()).Body.String()
	require.NotContains(t, body, "Resume the child case")
	require.NotContains(t, body, "Give up…")
	require.Contains(t, get(h, "/bulk?kind=give-up-incident&workflow=gone").Body.String(), "1 incident, which needs workflow gone.")

	page = get(h, "/incidents?workflow=whole&kind=case").Body.String()
	require.Contains(t, page, "Resume…")
	require.NotContains(t, page, "cannot be retried")
	require.Contains(t, get(h, "/cases/"+held.String()).Body.String(), "Resume the child case")
	w := submit(t, h, "/bulk?kind=give-up-incident&workflow=whole")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()
	require.Equal(t, "failed", o.stateOf(t, held).String())
}

// A dead letter whose original needs a definition that no program has is not redriven, and its page says what is missing. One of a function
// starts again with any version of it.
func TestDeadLettersWithoutTheDefinitionOfTheirOriginal(t *testing.T) {
	t.Parallel()
	letters := builder.MustLetters("letters")
	fail := func(name, version string) *builder.FuncRef[int, int] {
		return failsAtOnce(name, builder.DeadLetter(letters), builder.Version(version))
	}
	old, present, gone := fail("charge", "1"), fail("charge", "2"), fail("mail", "1")
	o := reopened(t, []engine.Workflow{letters, old, gone, present}, []engine.Workflow{letters, present}, func(o *office) {
		for _, f := range []*builder.FuncRef[int, int]{old, gone} {
			_, err := f.Run(t.Context(), o, 1)
			require.NoError(t, err)
		}
	})
	h := o.handler(admin.Config{Access: as("eve")})
	redrives := map[string]bool{"charge": true, "mail": false}
	for c, err := range store.AllCases(t.Context(), o, store.CaseFilter{Labels: workflow.LetterLabels("", "")}) {
		require.NoError(t, err)
		name := c.Labels[workflow.LabelLetterOf]
		body := get(h, "/cases/"+c.ID.String()).Body.String()
		require.Equal(t, redrives[name], strings.Contains(body, "Redrive…"), name)
		require.Equal(t, !redrives[name], strings.Contains(body, "No open engine has workflow mail, in which the work failed"), name)
	}
	body := get(h, "/bulk?kind=redrive&state=started&label=dead-letter%3Dyes").Body.String()
	require.Contains(t, body, "Redrive it: 1 case")
	require.Contains(t, body, "Left out: 1 case, which needs workflow mail.")
	require.Contains(t, get(h, "/bulk?kind=resume&state=failed").Body.String(), "2 cases, which need workflow charge 1, mail 1.")
}

// An item of a suspended case cannot be started, so that is not offered: neither on its page nor on that of the case. Both lead to the resume.
func TestItemsOfASuspendedCaseAreNotStarted(t *testing.T) {
	t.Parallel()
	o := &office{Engine: enginetest.New(t, deskOf("1"))}
	result, err := o.Do(t.Context(), workflow.Start("desk", nil))
	require.NoError(t, err)
	h := o.handler(admin.Config{Access: as("eve"), Bulk: bulk.New(engine.Code)})
	item, of := "/items/"+o.Item(result.Case, "check.1.1").ID.String(), "/cases/"+result.Case.String()
	require.Contains(t, get(h, item).Body.String(), "kind=item-start")
	require.NoError(t, enginetest.Do(t.Context(), o, workflow.Suspend(result.Case)))
	for _, path := range []string{item, of} {
		body := get(h, path).Body.String()
		require.NotContains(t, body, "kind=item-start", path)
		require.Contains(t, body, "kind=resume", path)
		require.Contains(t, body, "is suspended", path)
	}
	press(t, h, item, "Resume the case")
	require.Contains(t, get(h, item).Body.String(), "kind=item-start")
}

// Nor is an item of a child case started while the case above is suspended: its page leads to the resume of that one.
func TestItemsBelowASuspendedCaseAreNotStarted(t *testing.T) {
	t.Parallel()
	b := builder.New[int]("inner")
	b.Path(b.Start(), builder.Task(b, "check", builder.Work[int, int]{Input: builder.CaseInput(b)}), b.End())
	outer := holderOf("outer", b.MustBuild())
	o := &office{Engine: enginetest.New(t, outer)}
	root, err := outer.Start(t.Context(), o, 1)
	require.NoError(t, err)
	h := o.handler(admin.Config{Access: as("eve"), Bulk: bulk.New(engine.Code)})
	var items []string
	for c, err := range store.AllCases(t.Context(), o, store.CaseFilter{Workflow: "inner"}) {
		require.NoError(t, err)
		items = append(items, "/items/"+o.Item(c.ID, "check.1.1").ID.String())
	}
	require.Len(t, items, 1)
	require.Contains(t, get(h, items[0]).Body.String(), "kind=item-start")
	require.NoError(t, enginetest.Do(t.Context(), o, workflow.Suspend(root)))
	body := get(h, items[0]).Body.String()
	require.NotContains(t, body, "kind=item-start")
	require.Contains(t, body, "of outer is suspended")
	require.Contains(t, body, "/act?case="+root.String()+"&amp;kind=resume")
}

// Cases that failed without a code are grouped under their message, and the link of the group lists just these.
func TestCasesThatFailedWithoutACode(t *testing.T) {
	t.Parallel()
	b := builder.New[any]("desk")
	b.Path(b.Start(), builder.Task(b, "check", builder.Work[any, any]{}), b.End())
	desk := b.MustBuild()
	o := &office{Engine: enginetest.New(t, desk)}
	for _, code := range []string{"", "no-funds"} {
		id, err := desk.Start(t.Context(), o, nil)
		require.NoError(t, err)
		o.FailItem(id, "check", &workitem.Failure{Code: code, Message: "wrong address"})
	}
	h := o.handler(admin.Config{Access: as("eve"), Bulk: bulk.New(engine.Code)})
	page := get(h, "/incidents").Body.String()
	require.Contains(t, page, ">wrong address<")
	require.NotContains(t, page, ": wrong address\"")
	link := regexp.MustCompile(`href="(/cases\?code=&amp;[^"]*)"`).FindStringSubmatch(page)
	require.Len(t, link, 2, page)
	require.Equal(t, 1, strings.Count(get(h, html.UnescapeString(link[1])).Body.String(), `<tr id="row-`))
}

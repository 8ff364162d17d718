package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	stdnet "net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

type object = map[string]any

// conform checks a value against a schema of the description.
func conform(all object, schema object, v any, at string) error {
	if ref, ok := schema["$ref"].(string); ok {
		return conform(all, all[ref[strings.LastIndex(ref, "/")+1:]].(object), v, at)
	}
	switch schema["type"] {
	case "object":
		return conformObject(all, schema, v, at)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s is no array: %v", at, v)
		}
		for i, e := range list {
			if err := conform(all, schema["items"].(object), e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case "string":
		if _, ok := v.(string); !ok {
			return fmt.Errorf("%s is no string: %v", at, v)
		}
	case "integer":
		if n, ok := v.(float64); !ok || n != math.Trunc(n) {
			return fmt.Errorf("%s is no integer: %v", at, v)
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return fmt.Errorf("%s is no boolean: %v", at, v)
		}
	}
	return nil
}

func conformObject(all object, schema object, v any, at string) error {
	o, ok := v.(object)
	if !ok {
		return fmt.Errorf("%s is no object: %v", at, v)
	}
	properties, _ := schema["properties"].(object)
	for name, value := range o {
		p, known := properties[name].(object)
		if more, ok := schema["additionalProperties"].(object); !known && ok {
			p, known = more, true
		}
		if !known {
			if schema["additionalProperties"] == false {
				return fmt.Errorf("%s has a field %s, which is not described", at, name)
			}
			continue
		}
		if err := conform(all, p, value, at+"."+name); err != nil {
			return err
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, there := o[name.(string)]; !there {
			return fmt.Errorf("%s has no field %s", at, name)
		}
	}
	return nil
}

// Every answer is as the description in the binary says.
func TestAnswersAreAsDescribed(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("ann")})
	var doc struct {
		Paths      map[string]map[string]object
		Components struct{ Schemas object }
	}
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/openapi.json").Body.Bytes(), &doc))
	described := func(path string) object {
		bare, _, _ := strings.Cut(path, "?")
		parts := strings.Split(bare, "/")
		for i, p := range parts {
			if len(p) == 36 {
				parts[i] = "{id}"
			}
		}
		content := doc.Paths[strings.Join(parts, "/")]["get"]["responses"].(object)["200"].(object)["content"].(object)
		return content["application/json"].(object)["schema"].(object)
	}
	checked := 0
	for _, path := range o.paths(t) {
		if !strings.HasPrefix(path, "/api/") || strings.HasSuffix(path, "openapi.json") {
			continue
		}
		var v any
		require.NoError(t, json.Unmarshal(get(h, path).Body.Bytes(), &v))
		require.NoError(t, conform(doc.Components.Schemas, described(path), v, path))
		checked++
	}
	require.Greater(t, checked, 12)
	var fault any
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/cases?nix=1").Body.Bytes(), &fault))
	require.NoError(t, conform(doc.Components.Schemas, doc.Components.Schemas["Problem"].(object), fault, "problem"))
}

// The description names the parameters that a path takes, with their words: each is taken, and no other one is.
func TestTheParametersAreThoseDescribed(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("ann")})
	type parameter struct {
		Name, In string
		Schema   struct {
			Type, Format string
			Items        struct{ Enum []string }
			Enum         []string
		}
	}
	var doc struct {
		Paths map[string]map[string]struct{ Parameters []parameter }
	}
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/openapi.json").Body.Bytes(), &doc))
	valid := func(p parameter) string {
		switch {
		case len(p.Schema.Enum)+len(p.Schema.Items.Enum) > 0:
			return strings.Join(append(p.Schema.Enum, p.Schema.Items.Enum...), ",")
		case p.Schema.Format == "uuid":
			return o.order.String()
		case p.Schema.Type == "integer":
			return "1"
		case p.Schema.Type == "boolean":
			return "true"
		}
		return map[string]string{"label": "customer=ada", "older": "1h", "newer": "1h", "due": "1h"}[p.Name]
	}
	taken := 0
	for path, calls := range doc.Paths {
		if strings.Contains(path, "{") || path == "/api/v1/stream" || calls["get"].Parameters == nil {
			continue
		}
		for _, p := range calls["get"].Parameters {
			for value := range strings.SplitSeq(valid(p), ",") {
				at := path + "?" + p.Name + "=" + url.QueryEscape(value)
				require.Equal(t, http.StatusOK, get(h, at).Code, at)
				taken++
			}
		}
	}
	require.Greater(t, taken, 60)
	for path, calls := range doc.Paths {
		if _, reads := calls["get"]; !reads {
			continue
		}
		path = strings.NewReplacer("{id}", o.order.String(), "{name}", "none").Replace(path)
		answer := get(h, path+"?colour=red")
		require.Equal(t, http.StatusBadRequest, answer.Code, path)
		require.Contains(t, answer.Body.String(), `"param":"colour"`, path)
	}
}

// Cases are selected by business key and labels, with the names that the flags of the command have.
func TestCasesByKeyAndLabels(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	id, err := o.Do(t.Context(), workflow.Start("bill", nil, workflow.BusinessKey("C-4711"), workflow.Label("customer", "ada"),
		workflow.Label("region", "a=b")))
	require.NoError(t, err)
	for query, want := range map[string][]string{
		"key=C-4711": {id.Case.String()}, "label=customer=ada": {id.Case.String()}, "label=customer%3Dada&label=region%3Da%3Db": {id.Case.String()},
		"key=C-47": nil, "label=customer=bob": nil, "label=customer=ada&label=region=a": nil,
	} {
		var page struct {
			Rows []struct{ ID, Key string }
		}
		require.NoError(t, json.Unmarshal(get(h, "/api/v1/cases?"+query).Body.Bytes(), &page))
		var got []string
		for _, r := range page.Rows {
			got = append(got, r.ID)
		}
		require.Equal(t, want, got, query)
	}
	for _, query := range []string{"label=customer", "label=a=1&label=a=2", "label=+=1"} {
		require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/cases?"+query).Code, query)
	}
}

// The pages of a list hold each row once, and the lines of an export are the same rows.
func TestListsPageByPageAndAsLines(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	var ids []string
	for cursor, done := "", false; !done; {
		var page struct {
			Rows []struct{ ID string }
			Next string
		}
		require.NoError(t, json.Unmarshal(get(h, "/api/v1/items?limit=2&cursor="+cursor).Body.Bytes(), &page))
		for _, r := range page.Rows {
			ids = append(ids, r.ID)
		}
		cursor, done = page.Next, page.Next == ""
	}
	require.True(t, slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }))
	var lines []string
	for line := range strings.Lines(get(h, "/api/v1/items", "application/x-ndjson").Body.String()) {
		var row struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		lines = append(lines, row.ID)
	}
	require.Equal(t, lines, ids)
	require.Greater(t, len(ids), 8)
}

// stream reads server-sent events until the test ends.
func stream(t *testing.T, url string, header ...string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, w.StatusCode)
	require.Equal(t, "text/event-stream", w.Header.Get("Content-Type"))
	events := make(chan string, 100)
	go func() {
		defer w.Body.Close()
		defer close(events)
		lines := bufio.NewScanner(w.Body)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			if lines.Text() != "" {
				events <- lines.Text()
			}
		}
	}()
	return events
}

// soon waits for a line that begins as given.
func soon(t *testing.T, events <-chan string, prefix string) string {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case line := <-events:
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-late:
			t.Fatalf("no line %q", prefix)
		}
	}
}

func (o *office) serve(t *testing.T) string {
	t.Helper()
	c := admin.Config{Access: as("ann"), Bulk: o.bulk, Clock: retry.SystemClock}
	return serve(t, admin.Handler(o.Engine.Engine, c))
}

// serve serves pages at an address of this machine until the test ends.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	streams, end := context.WithCancel(context.Background())
	server.Config.BaseContext = func(stdnet.Listener) context.Context { return streams }
	server.Start()
	t.Cleanup(func() {
		end() // a stream continues until the client leaves, and a browser connects again when it is lost: Close would wait for it
		server.Close()
	})
	return server.URL
}

// The stream has the entries of the journal, and continues where a client was.
func TestTheStreamIsResumable(t *testing.T) {
	o := newOffice(t, "text")
	base := o.serve(t)
	all := stream(t, base+"/api/v1/stream")
	first := soon(t, all, "id: ")
	for e, err := range store.AllEntries(t.Context(), o, store.JournalFilter{Limit: 1}) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("id: ", e.Seq), first)
	}
	second := soon(t, all, "id: ")
	rest := stream(t, base+"/api/v1/stream", "Last-Event-ID", strings.TrimPrefix(first, "id: "))
	require.Equal(t, second, soon(t, rest, "id: "))
	of := stream(t, base+"/api/v1/stream?root="+o.order.String())
	require.Contains(t, soon(t, of, "data: "), `"command":"start order"`)
}

// A live page gets the parts that a command changes, and only those; all who look get the same.
func TestALivePageGetsWhatHasChanged(t *testing.T) {
	o := newOffice(t, "text")
	base := o.serve(t)
	page := "/cases/" + o.order.String()
	r, err := http.Get(base + page)
	require.NoError(t, err)
	defer r.Body.Close()
	live := base + "/live?page=" + url.QueryEscape(page)
	one, two := stream(t, live), stream(t, live)
	first := soon(t, one, "data: ")
	require.Contains(t, first, `"picture"`)
	require.Equal(t, first, soon(t, two, "data: "))
	_, err = o.Do(t.Context(), workflow.Send(o.order, "paid", "now"))
	require.NoError(t, err)
	for {
		next := soon(t, one, "data: ")
		require.NotContains(t, next, `"tabs":"<nav class=\"nothing`)
		if strings.Contains(next, "s-completed") {
			break
		}
	}
	soon(t, two, "data: ")
}

// An event is one write, as the response has no chunks, and it ends with its connection; over HTTP/2 it is a stream as any other.
func TestEventsOverBothVersionsOfHTTP(t *testing.T) {
	o := newOffice(t, "text")
	server := httptest.NewUnstartedServer(o.handler(admin.Config{Access: admin.AllowAll}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	for _, major := range []int{1, 2} {
		client := server.Client()
		if major == 1 {
			transport := client.Transport.(*http.Transport).Clone()
			transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
			transport.ForceAttemptHTTP2 = false
			client = &http.Client{Transport: transport}
		}
		ctx, stop := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live?page="+url.QueryEscape("/cases/"+o.order.String()), nil)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.Equal(t, major, answer.ProtoMajor)
		require.Empty(t, answer.TransferEncoding)
		event, err := bufio.NewReader(answer.Body).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "event: parts\n", event)
		stop()
		require.NoError(t, answer.Body.Close())
	}
}

// The doctor of the API lists what nothing moves, in pages of JSON and as rows without end.
func TestTheDoctorOfTheAPI(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	id, err := o.Do(t.Context(), workflow.Start("bill", nil))
	require.NoError(t, err)
	_, err = o.Do(t.Context(), workflow.Suspend(id.Case, workflow.By("ann")))
	require.NoError(t, err)
	want := object{"case": id.Case.String(), "cause": "suspended", "repair": "tasq case resume " + id.Case.String()}
	var page struct{ Rows []object }
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/doctor?limit=500").Body.Bytes(), &page))
	require.Subset(t, page.Rows[slices.IndexFunc(page.Rows, func(r object) bool { return r["case"] == want["case"] })], want)
	require.Contains(t, get(h, "/api/v1/doctor?format=csv").Body.String(), id.Case.String())
	require.NotContains(t, get(h, "/api/v1/doctor?older=1h").Body.String(), id.Case.String())
	require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/doctor?older=x").Code)
}

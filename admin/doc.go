// Package admin serves an engine over HTTP: pages and a JSON API that inspect and repair what runs ([Handler]), and an endpoint
// that receives webhooks for steps that wait for them ([Webhook]).
//
//	pages := admin.Handler(e, admin.Config{Prefix: "/tasq", Access: signedIn})
//	mux.Handle("/tasq/", pages)
//	mux.Handle("POST /hooks/", http.StripPrefix("/hooks/", admin.Webhook(e, 0)))
//
// The program that mounts a handler authenticates its users: Config.Access returns the user of a request and what that user may
// do, and without it every request is refused. The pages are complete HTML without a script; with one they update themselves.
// All changes are commands of package workflow, with the user as their actor in the history.
//
//	browser ──▶ internal/view   HTML pages and forms          ┐                  engine.Engine (Do, View), or
//	program ──▶ internal/api    JSON, NDJSON, CSV, SSE        ├──▶ Backend ──▶   Reading: a store opened for reading, with
//	            internal/access who may see and do what       │                  commands posted to the owner of the database
//	            internal/mask   what Config.Show replaces     ┘
//
// A page reads a bounded number of rows, and past states are rebuilt from the journal when they are asked for. The package
// stores nothing: it keeps rebuilt states in a cache, and everything else is in the database of the engine.
package admin

// Package view renders the pages: HTML from templates. A page consists of parts, each of which is an element with an
// id, so that only changed parts are sent to a live page. Every page works without JavaScript.
//
//	GET /cases/ID                ──▶ a build reads in one view of the store, and returns a Page with its Parts
//	                                   └─▶ render: a template per part ──▶ the whole page, or its parts as JSON
//	GET /act?kind=cancel&case=ID ──▶ the form of a command
//	POST /act                    ──▶ the command is executed ──▶ redirect to the page that follows
package view

// Package admin serves an engine to the outside by HTTP: pages to look at what runs and to repair it, with a JSON API, see [Handler];
// and the receiver of webhooks, see [Webhook].
package admin

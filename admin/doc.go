// Package admin serves an engine to the outside by HTTP. So far that is the door for webhooks; see [Webhook].
package admin

// Package view makes the pages: HTML of templates, from what a reader shows. A page is made of parts, each an element with an id, so
// that a live page gets only the parts that have changed. Every page works without a script.
package view

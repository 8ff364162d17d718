// Package xmlread is what the readers of foreign process models share: an XML reader for files as they are found, the
// report that says what did not come across, and the making of usable names.
//
// Files as found break XML's rules in a few well-known ways: "--" inside a comment, a namespace that is never declared,
// a Latin-1 letter in a file that says UTF-8. [Parse] reads them nevertheless. What it does not forgive is anything
// that would make it guess at the structure: an element that is not closed or closed by another's tag.
//
// Files as sent by an enemy are bounded: by their bytes, by their depth and by the number of elements and attributes.
// There is no recursion, entities that a file declares are never expanded, and every step is linear in the input.
package xmlread

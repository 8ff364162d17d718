// Package xmlread has the common parts of the readers of foreign process models: a lenient XML reader, the report of
// what could not be represented, and the generation of valid names.
//
// Real files violate XML's rules in a few well-known ways: "--" inside a comment, a namespace that is never declared, a
// Latin-1 letter in a file that is declared as UTF-8. [Parse] reads them nevertheless. It refuses anything for which it
// would have to guess the structure: an element that is not closed, or is closed by the tag of another.
//
// Malicious files are limited: in bytes, in depth and in the number of elements and attributes. There is no recursion,
// entities that a file declares are never expanded, and every step is linear in the input.
package xmlread

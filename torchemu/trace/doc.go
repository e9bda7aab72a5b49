// Package trace records what the ranks of a World and their devices do in simulated time.
//
// A [Recorder] is told of everything that ends; it hands that on to its [Recording]s, of which each wants some ranks,
// some time and some [Level]. A Recording is plain data. How it becomes a file that a viewer opens is the business of
// the packages below this one: kineto, perfetto and chrome.
//
// Nothing here costs anything while there is no Recording.
package trace

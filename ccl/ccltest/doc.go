// Package ccltest checks that schedules do what their collective promises. Any ccl.Algorithm must pass Check.
//
// Nothing here uses ccl's Builder: the rules of a Schedule are written out a second time, as plainly as possible, so that
// a mistake in one is seen by the other.
package ccltest

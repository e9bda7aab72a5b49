// Package schema reads the project's YAML files. A tree of Go types is the schema of a kind of file; a file is decoded
// over the values that the tree already holds, which are the defaults. Everything that is wrong is reported at once,
// each [Problem] with its line, its path, what would be right, and for a slip the word that was meant.
//
// The tree is made of
//
//   - structs: mappings, whose keys are the fields' yaml tags; those of an embedded struct count as its own;
//   - maps that are [Keyed]: mappings with free keys, whose values all follow one schema;
//   - slices: lists with at least one entry;
//   - [Value]s: the leaves, which parse and check themselves;
//   - pointers to any of these: nil when neither the file nor the defaults have the key.
//
// [Format.Decode] returns a [Document], with which the caller reports what is wrong between values that are each fine.
// [Tree] goes the other way, from the types to plain maps.
package schema

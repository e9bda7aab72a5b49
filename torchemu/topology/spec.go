package topology

import "github.com/torchemu/torchemu/torchemu/schema"

// Spec is the tree of the topology file with every default filled in: maps, []any, string, int and float64, in the
// file's own keys and units (GB/s, ns). The caller owns it.
func (t *Topology) Spec() map[string]any { return schema.Tree(&t.config) }

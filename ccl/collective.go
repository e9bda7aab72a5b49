package ccl

import "github.com/torchemu/torchemu/torchemu/collective"

// starts is what a rank starts with.
func (s *Schedule) starts(rank int) collective.Share { return s.Collective.Starts().Of(rank, s.Root) }

// ends is what a rank ends with.
func (s *Schedule) ends(rank int) collective.Share { return s.Collective.Ends().Of(rank, s.Root) }

// has says whether the chunk is part of a rank's share.
func (s *Schedule) has(share collective.Share, rank, chunk int) bool {
	switch share {
	case collective.None:
		return false
	case collective.Block:
		return chunk/s.Sub == rank
	}
	return true
}

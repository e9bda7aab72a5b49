package tp

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultOrder is Megatron's order of the kinds of parallelism.
const DefaultOrder = "tp-cp-ep-dp-pp"

// Sizes is into how many parts each kind of parallelism divides the ranks: tensor, context, expert, data and pipeline.
// 0 counts as 1.
type Sizes struct{ TP, CP, EP, DP, PP int }

// axis is a kind of parallelism along which ranks are arranged, stride ranks apart.
type axis struct {
	name         string
	size, stride int
}

// RankGenerator arranges ranks along the kinds of parallelism, and lists the groups that they form.
type RankGenerator struct {
	World int // the number of ranks: the product of all sizes

	axes []axis // the one that varies fastest from rank to rank first
}

// NewRankGenerator arranges ranks in an order such as "tp-cp-ep-dp-pp", of which the leftmost varies fastest. A kind of
// size 1 may be left out. Context and expert parallelism do not go together in one arrangement.
func NewRankGenerator(s Sizes, order string) (*RankGenerator, error) {
	axes, err := s.ordered(order)
	if err != nil {
		return nil, err
	}
	return arranged(axes), nil
}

// ordered lists the kinds of parallelism in an order, and those that are not in it last.
func (s Sizes) ordered(order string) ([]axis, error) {
	if s.EP > 1 && s.CP > 1 {
		return nil, conflict("ep (%d) and cp (%d) are both greater than 1: dense layers have no expert parallelism, "+
			"and expert layers have no context parallelism", s.EP, s.CP)
	}
	left := []axis{{name: "tp", size: s.TP}, {name: "pp", size: s.PP}, {name: "dp", size: s.DP}, {name: "ep", size: s.EP}, {name: "cp", size: s.CP}}
	var axes []axis
	for _, name := range strings.Split(strings.ToLower(order), "-") {
		i := find(left, name)
		if i < 0 {
			return nil, fmt.Errorf("order %q: %q is not a kind of parallelism, or is there twice; the kinds are tp, cp, ep, dp, pp",
				order, name)
		}
		axes = append(axes, left[i])
		left = slices.Delete(left, i, i+1)
	}
	for _, a := range left {
		if a.size > 1 {
			return nil, fmt.Errorf("the size of %s is %d, but the order %q does not say where it goes", a.name, a.size, order)
		}
	}
	return append(axes, left...), nil
}

func find(axes []axis, name string) int {
	return slices.IndexFunc(axes, func(a axis) bool { return a.name == name })
}

// arranged lays ranks out along axes, of which the first varies fastest.
func arranged(axes []axis) *RankGenerator {
	g := &RankGenerator{World: 1}
	for _, a := range axes {
		a.size, a.stride = max(a.size, 1), g.World
		g.axes = append(g.axes, a)
		g.World *= a.size
	}
	return g
}

// size is the number of parts along an axis.
func (g *RankGenerator) size(name string) int { return g.axes[find(g.axes, name)].size }

// Ranks lists the groups of a kind of parallelism, or of several, such as "tp-dp": ranks that differ in these alone are
// in one group. Groups and ranks are in ascending order.
func (g *RankGenerator) Ranks(kinds string) ([][]int, error) {
	var within []axis
	for _, name := range strings.Split(kinds, "-") {
		i := find(g.axes, name)
		if i < 0 {
			return nil, fmt.Errorf("ranks of %q: %q is not a kind of parallelism", kinds, name)
		}
		within = append(within, g.axes[i])
	}
	var groups [][]int
	number := map[int]int{} // of the group, by its first rank
	for rank := range g.World {
		first := rank
		for _, a := range within {
			first -= rank / a.stride % a.size * a.stride
		}
		if first == rank {
			number[rank] = len(groups)
			groups = append(groups, nil)
		}
		i := number[first]
		groups[i] = append(groups[i], rank)
	}
	return groups, nil
}

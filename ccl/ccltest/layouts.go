package ccltest

import (
	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/torchemu/collective"
)

// Worlds are the sizes that Check tries: all small ones, powers of two, and their neighbours.
func Worlds() []int {
	return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 64}
}

// Layouts are the layouts of one world that Check tries: without any knowledge, as long and as square tori, in even
// groups, dealt round robin, in uneven groups, and everyone alone.
func Layouts(world int) []ccl.Layout {
	layouts := []ccl.Layout{
		{World: world},
		{World: world, Group: grouped(world, func(r int) int { return r / max(1, world/2) })},
		{World: world, Group: grouped(world, func(r int) int { return 7 - r%3 })},
		{World: world, Group: grouped(world, func(r int) int { return r * r % 5 })},
		{World: world, Group: grouped(world, func(r int) int { return r })},
		{World: world, Group: grouped(world, func(r int) int { return max(0, r-world/2) })},
		{World: world, W: 1, H: world},
	}
	for w := 2; w <= world; w++ {
		if world%w == 0 {
			layouts = append(layouts, ccl.Layout{World: world, W: w, H: world / w})
		}
	}
	return layouts
}

// Roots are the roots that Check tries: all in small worlds; 0 where there is none.
func Roots(c collective.Kind, world int) []int {
	switch {
	case !c.Rooted() || world == 1:
		return []int{0}
	case world > 8:
		return []int{0, 1, world / 2, world - 1}
	}
	roots := make([]int, world)
	for r := range roots {
		roots[r] = r
	}
	return roots
}

func grouped(world int, group func(r int) int) []int {
	groups := make([]int, world)
	for r := range groups {
		groups[r] = group(r)
	}
	return groups
}

package schema

import "strings"

// suggest names the known key that an unknown one is a slip of, or else all of them.
func suggest(word string, known []string) string {
	if meant := nearest(word, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	return listing(known)
}

func listing(known []string) string { return "the keys are " + strings.Join(known, ", ") }

// nearest is the known word that another is a slip of; "" when there is none. One slip or two leave at least two letters
// right; the case of letters is no slip.
func nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		n := slips(strings.ToLower(word), strings.ToLower(k))
		if n < least && (n == 0 || max(len(word), len(k))-n >= 2) {
			best, least = k, n
		}
	}
	return best
}

// slips counts the letters inserted, deleted or replaced between two words (Levenshtein's distance).
func slips(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := corner
			if a[i] != b[j] {
				replace++
			}
			corner = row[j+1]
			row[j+1] = min(replace, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}

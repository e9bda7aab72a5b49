package topology

import "strings"

// suggest names the known word that an unknown one is a slip of, or else all of them.
func suggest(word string, known []string) string {
	best, least := "", 3 // more than two slips are another word
	for _, k := range known {
		if n := slips(word, k); n < least && n < len(k) {
			best, least = k, n
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "the keys are " + strings.Join(known, ", ")
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

package npy

import (
	"fmt"
	"strings"
)

// FileNames returns for each of some names that of a .npy file which can be written
// everywhere. No two are the same, also where case does not count.
func FileNames(names []string) []string {
	used := map[string]bool{}
	var out []string
	for _, n := range names {
		name := fileName(n)
		for i := 2; used[strings.ToLower(name)]; i++ {
			name = fmt.Sprintf("%s-%d", fileName(n), i)
		}
		used[strings.ToLower(name)] = true
		out = append(out, name+".npy")
	}
	return out
}

func fileName(s string) string {
	s = strings.Map(func(c rune) rune {
		if strings.ContainsRune("._-", c) || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, s)
	return s[:min(len(s), 100)]
}

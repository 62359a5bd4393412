package library

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// The form of a name, which may have a tag behind a colon.
var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$`)

const (
	maxName   = 120 // bytes of a name: folders take 255
	latestTag = ":latest"
)

// cleanName returns a name as folders have it. Capitals mean nothing, as on many disks, and neither does the tag "latest".
func cleanName(name string) (string, error) {
	clean := strings.TrimSuffix(strings.ToLower(name), latestTag)
	if len(clean) > maxName || !nameForm.MatchString(clean) {
		return "", fmt.Errorf("%.40q is no name of a model: write letters, digits, dots, hyphens and underscores, and a tag behind a colon if there is one, as in qwen3:8b", name)
	}
	return clean, nil
}

// guessName makes a name of what a source calls a model.
func guessName(text string) (string, error) {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	name, err := cleanName(strings.Trim(text, "._-"))
	if err != nil {
		return "", fmt.Errorf("the source gives the model no name: give it one: %w", err)
	}
	return name, nil
}

// folder returns where a model is. A colon is no character of a folder's name on every system.
func (l *Library) folder(name string) string {
	return filepath.Join(l.dir, strings.Replace(name, ":", "@", 1))
}

// nameOf is the inverse of folder.
func nameOf(folder string) (string, bool) {
	name := strings.Replace(folder, "@", ":", 1)
	clean, err := cleanName(name)
	return name, err == nil && clean == name
}

package main

import (
	"fmt"
	"strconv"
)

// command carries out one line of a silo's input.
func (s *silo) command(words []string) (string, error) {
	if len(words) == 0 {
		return "", fmt.Errorf("an empty command")
	}
	args := words[1:]
	switch {
	case words[0] == "view" && len(args) > 1:
		number, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil {
			return "", err
		}
		return "ok", s.fix(number, args[1:])
	case words[0] == "start" && len(args) == 1:
		return "ok", s.start(args[0])
	}
	return "", fmt.Errorf("no such command: %v", words)
}

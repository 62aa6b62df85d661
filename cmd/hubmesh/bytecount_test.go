package main

import "testing"

// bad input: sizes on the command line
func TestANumberOfBytesIsReadWithItsUnit(t *testing.T) {
	for text, want := range map[string]byteCount{"1": 1, "1048576": 1 << 20, "3KiB": 3 << 10, "64MiB": 64 << 20, "2GiB": 2 << 30, "0": 0, "-5": -5} {
		var got byteCount
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "1MB", "1.5MiB", "1 MiB", "9223372036854775807KiB", "9223372036854775808"} {
		var got byteCount
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

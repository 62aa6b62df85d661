package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteCount is a number of bytes on the command line: "1048576", "1024KiB" or "1MiB".
type byteCount int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteCount) UnmarshalText(text []byte) error {
	digits, unit := string(text), int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = rest, size
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return fmt.Errorf("'%s' is no number of bytes; write 67108864, 65536KiB, 64MiB or 1GiB", text)
	}
	*b = byteCount(n * unit)
	return nil
}

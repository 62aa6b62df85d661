package node

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path is a validated node path: segments joined by "/", without outer slashes, case-sensitive. The
// zero value "" is the root scope, which holds no node but does hold the root access assignments.
// Make one with [ParsePath] or [Path.Join]; a conversion from string skips the checks and belongs to
// stores that read back what was checked before.
type Path string

// MaxPathBytes bounds a path. A B-tree key of PostgreSQL may hold 2,704 bytes, and a notification
// 7,999, so a longer path would break the write or the feed (storage.md §3).
const MaxPathBytes = 1024

// MaxPartitionBytes bounds the first segment (data.md §2.3).
const MaxPartitionBytes = 63

// PathError says why a text is not a path. Path holds at most the first 200 bytes of it.
type PathError struct {
	Path   string
	Reason string
}

func (e *PathError) Error() string { return fmt.Sprintf("invalid path %q: %s", e.Path, e.Reason) }

func pathError(text, reason string) *PathError {
	const shown = 200
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return &PathError{Path: text, Reason: reason}
}

// ParsePath checks text and returns it as a path; outer slashes are trimmed. It refuses with
// *[PathError]: an empty path, more than [MaxPathBytes], invalid UTF-8, control characters, a
// backslash, "~" (it separates hosts in an address), the segments "." and "..", empty segments,
// segments that begin or end with white space, percent-encoded separators (a text that still has to
// be decoded), and an illegal partition name (see [CheckPartition]). Rules: data.md §1.2.
func ParsePath(text string) (Path, error) {
	trimmed := strings.Trim(text, "/")
	if trimmed == "" {
		return "", pathError(text, "it is empty")
	}
	if len(trimmed) > MaxPathBytes {
		return "", pathError(text, fmt.Sprintf("it has %d bytes; %d are allowed", len(trimmed), MaxPathBytes))
	}
	first := true
	for segment := range strings.SplitSeq(trimmed, "/") {
		if reason := checkSegment(segment); reason != "" {
			return "", pathError(text, reason)
		}
		if first {
			if reason := checkPartition(segment); reason != "" {
				return "", pathError(text, reason)
			}
			first = false
		}
	}
	return Path(trimmed), nil
}

// Join returns the path of the child named segment, or *[PathError].
func (p Path) Join(segment string) (Path, error) {
	reason := checkSegment(segment)
	if reason == "" && p == "" {
		reason = checkPartition(segment)
	}
	joined := segment
	if p != "" {
		joined = string(p) + "/" + segment
	}
	if reason == "" && strings.Contains(segment, "/") {
		reason = "a segment has no '/'"
	}
	if reason == "" && len(joined) > MaxPathBytes {
		reason = fmt.Sprintf("it has %d bytes; %d are allowed", len(joined), MaxPathBytes)
	}
	if reason != "" {
		return "", pathError(joined, reason)
	}
	return Path(joined), nil
}

// CheckPartition tells with *[PathError] whether name may be the first segment of a path: 1 to 63
// bytes, first an ASCII letter or digit, then letters, digits, ".", "-" and "_"; or "_Access", the
// home of the root access assignments.
func CheckPartition(name string) error {
	reason := checkSegment(name)
	if reason == "" {
		reason = checkPartition(name)
	}
	if reason != "" {
		return pathError(name, reason)
	}
	return nil
}

func checkPartition(name string) string {
	if name == string(RootAccess) {
		return ""
	}
	if len(name) > MaxPartitionBytes {
		return fmt.Sprintf("the first segment has %d bytes; %d are allowed", len(name), MaxPartitionBytes)
	}
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if alnum || i > 0 && (c == '.' || c == '-' || c == '_') {
			continue
		}
		if i == 0 && c == '_' {
			return "the first segment may not be hidden or a satellite; only '_Access' may"
		}
		return "the first segment begins with an ASCII letter or digit and holds letters, digits, '.', '-' and '_'"
	}
	return ""
}

// checkSegment returns the reason why segment is refused, or "".
func checkSegment(segment string) string {
	switch segment {
	case "":
		return "it has an empty segment"
	case ".", "..":
		return "'.' and '..' are not segments"
	}
	for i := 0; i < len(segment); {
		c := segment[i]
		if c < utf8.RuneSelf {
			switch {
			case c == 0:
				return "it holds a NUL"
			case c < 0x20 || c == 0x7f:
				return "it holds a control character"
			case c == '\\':
				return `it holds a '\'; segments are separated by '/'`
			case c == '~':
				return "it holds a '~', which separates hosts in an address"
			case c == '%' && encodedSeparator(segment[i:]):
				return "it holds a percent-encoded '.', '/', '\\' or NUL; decode it first"
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(segment[i:])
		if r == utf8.RuneError && size == 1 {
			return "it is not valid UTF-8"
		}
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
			return "it holds a control character"
		}
		i += size
	}
	first, _ := utf8.DecodeRuneInString(segment)
	last, _ := utf8.DecodeLastRuneInString(segment)
	if unicode.IsSpace(first) || unicode.IsSpace(last) {
		return "a segment may not begin or end with white space"
	}
	return ""
}

// encodedSeparator tells whether s begins with an encoding that would change the shape of a path in
// the hands of something that decodes once more.
func encodedSeparator(s string) bool {
	if len(s) < 3 {
		return false
	}
	switch strings.ToLower(s[1:3]) {
	case "2e", "2f", "5c", "00":
		return true
	}
	return false
}

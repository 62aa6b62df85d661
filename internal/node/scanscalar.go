package node

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a quoted text and writes it with the fewest escapes, so that equal texts are equal bytes.
func (s *scanner) text() error {
	s.at++
	s.out = append(s.out, '"')
	for run := s.at; ; {
		if s.at >= len(s.in) {
			return s.fail(ContentSyntax, "it ends inside a text")
		}
		switch c := s.in[s.at]; {
		case c == '"':
			s.out = append(s.out, s.in[run:s.at]...)
			s.out = append(s.out, '"')
			s.at++
			return nil
		case c == '\\':
			s.out = append(s.out, s.in[run:s.at]...)
			if err := s.escape(); err != nil {
				return err
			}
			run = s.at
		case c < 0x20:
			return s.fail(ContentText, "a control character in a text must be escaped")
		case c < utf8.RuneSelf:
			s.at++
		default:
			r, size := utf8.DecodeRune(s.in[s.at:])
			if r == utf8.RuneError && size == 1 {
				return s.fail(ContentText, "it is not valid UTF-8")
			}
			s.at += size
		}
	}
}

// escape reads one escape sequence.
func (s *scanner) escape() error {
	if s.at+1 >= len(s.in) {
		return s.fail(ContentSyntax, "it ends inside a text")
	}
	var r rune
	switch c := s.in[s.at+1]; c {
	case '"', '\\', '/':
		r = rune(c)
	case 'b':
		r = '\b'
	case 'f':
		r = '\f'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 't':
		r = '\t'
	case 'u':
		return s.unicodeEscape()
	default:
		return s.fail(ContentSyntax, "no such escape in a text")
	}
	s.at += 2
	s.out = appendRune(s.out, r)
	return nil
}

func (s *scanner) unicodeEscape() error {
	r, ok := hex4(s.in[s.at:])
	if !ok {
		return s.fail(ContentSyntax, `\u needs four hexadecimal digits`)
	}
	width := 6
	if utf16.IsSurrogate(r) {
		low, ok := hex4(s.in[s.at+6:])
		if !ok {
			low = utf8.RuneError
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return s.fail(ContentText, "half of a surrogate pair is not a character")
		}
		width = 12
	}
	if r == 0 {
		return s.fail(ContentText, `\u0000 cannot be stored`)
	}
	s.at += width
	s.out = appendRune(s.out, r)
	return nil
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Bounds of a number. PostgreSQL's numeric keeps 131,072 digits before the point and 16,383 after it.
const (
	maxNumberBytes = 4096
	maxExponent    = 9999
)

// number reads a number and keeps it as it was written.
func (s *scanner) number() error {
	start := s.at
	if s.in[s.at] == '-' {
		s.at++
	}
	switch {
	case s.peek() == '0':
		s.at++
	case s.digits() == 0:
		return s.unexpected("inside a number")
	}
	if s.peek() == '.' {
		s.at++
		if s.digits() == 0 {
			return s.unexpected("inside a number")
		}
	}
	if s.peek() == 'e' || s.peek() == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		from := s.at
		if s.digits() == 0 {
			return s.unexpected("inside a number")
		}
		if exponent, err := strconv.Atoi(string(s.in[from:s.at])); err != nil || exponent > maxExponent {
			s.at = start
			return s.fail(ContentNumber, "a number beyond 1e±9999 cannot be stored")
		}
	}
	if s.at-start > maxNumberBytes {
		s.at = start
		return s.fail(ContentNumber, "a number of more than 4096 characters cannot be stored")
	}
	s.out = append(s.out, s.in[start:s.at]...)
	return nil
}

func (s *scanner) peek() byte {
	if s.at < len(s.in) {
		return s.in[s.at]
	}
	return 0
}

func (s *scanner) digits() int {
	from := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at - from
}

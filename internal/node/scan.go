package node

import (
	"fmt"
	"unicode/utf8"
)

// canonical checks b and returns its canonical text; see [ParseContent] for what that is. The levels around the
// content, such as the node's own object, are not of its depth.
func canonical(b []byte, limits Limits, around int) (string, error) {
	// White space may make a text larger than what is kept of it, within reason.
	if len(b) > 4*limits.NodeBytes {
		return "", sizeError(len(b), limits.NodeBytes)
	}
	s := scanner{in: b, limits: limits, around: around, out: make([]byte, 0, min(len(b), limits.NodeBytes))}
	if err := s.run(); err != nil {
		return "", err
	}
	return string(s.out), nil
}

// scanner validates JSON and writes its canonical form in one pass. It keeps an explicit stack, so the
// depth of hostile input costs nothing.
type scanner struct {
	in     []byte
	at     int
	out    []byte
	limits Limits
	around int // levels around the content
	stack  []frame
	keys   []span // names of the open objects, innermost last
}

// frame is one open array or object.
type frame struct {
	object bool
	keys   int                 // start of the object's names in scanner.keys
	seen   map[string]struct{} // names, once there are more than linearKeys
}

// span is a piece of scanner.out.
type span struct{ from, to int }

// linearKeys is the number of names that are compared one by one before a set is made.
const linearKeys = 24

func (s *scanner) run() error {
	s.space()
	if err := s.value(); err != nil {
		return err
	}
	for len(s.stack) > 0 {
		if err := s.step(); err != nil {
			return err
		}
	}
	s.space()
	if s.at < len(s.in) {
		return s.unexpected("after the value")
	}
	if len(s.out) > s.limits.NodeBytes {
		return sizeError(len(s.out), s.limits.NodeBytes)
	}
	return nil
}

// step continues the innermost open container: it closes it or reads its next element.
func (s *scanner) step() error {
	top := &s.stack[len(s.stack)-1]
	closing := byte(']')
	if top.object {
		closing = '}'
	}
	s.space()
	if s.at >= len(s.in) {
		return s.fail(ContentSyntax, "it ends inside an array or object")
	}
	opened := s.out[len(s.out)-1] == '{' || s.out[len(s.out)-1] == '['
	switch c := s.in[s.at]; {
	case c == closing:
		s.at++
		s.out = append(s.out, c)
		s.keys = s.keys[:top.keys]
		s.stack = s.stack[:len(s.stack)-1]
		return nil
	case opened:
	case c == ',':
		s.at++
		s.out = append(s.out, ',')
		s.space()
	default:
		return s.unexpected(fmt.Sprintf("where ',' or '%c' belongs", closing))
	}
	if top.object {
		if err := s.key(top); err != nil {
			return err
		}
	}
	return s.value()
}

// key reads a member's name and the colon.
func (s *scanner) key(top *frame) error {
	if s.at >= len(s.in) || s.in[s.at] != '"' {
		return s.unexpected("where a member's name belongs")
	}
	start, from := s.at, len(s.out)
	if err := s.text(); err != nil {
		return err
	}
	if !s.addKey(top, span{from, len(s.out)}) {
		s.at = start
		return s.fail(ContentDuplicate, fmt.Sprintf("the object has a second member %.100s", s.out[from:]))
	}
	s.space()
	if s.at >= len(s.in) || s.in[s.at] != ':' {
		return s.unexpected("where ':' belongs")
	}
	s.at++
	s.out = append(s.out, ':')
	s.space()
	return nil
}

// addKey records a name of the object; false when it has been there before.
func (s *scanner) addKey(top *frame, name span) bool {
	text := s.out[name.from:name.to]
	if top.seen != nil {
		if _, dup := top.seen[string(text)]; dup {
			return false
		}
		top.seen[string(text)] = struct{}{}
		return true
	}
	known := s.keys[top.keys:]
	for _, k := range known {
		if string(s.out[k.from:k.to]) == string(text) {
			return false
		}
	}
	s.keys = append(s.keys, name)
	if len(known)+1 > linearKeys {
		top.seen = make(map[string]struct{}, 2*linearKeys)
		for _, k := range s.keys[top.keys:] {
			top.seen[string(s.out[k.from:k.to])] = struct{}{}
		}
		s.keys = s.keys[:top.keys]
	}
	return true
}

// value reads a scalar, or opens a container.
func (s *scanner) value() error {
	if len(s.out) > s.limits.NodeBytes {
		return sizeError(len(s.in), s.limits.NodeBytes)
	}
	if s.at >= len(s.in) {
		return s.fail(ContentSyntax, "it ends where a value belongs")
	}
	switch c := s.in[s.at]; c {
	case '{', '[':
		if len(s.stack) >= s.limits.Depth+s.around {
			what := "it"
			if s.around > 0 {
				what = "the content"
			}
			return s.fail(ContentDepth, fmt.Sprintf("%s is nested deeper than %d levels", what, s.limits.Depth))
		}
		s.at++
		s.out = append(s.out, c)
		s.stack = append(s.stack, frame{object: c == '{', keys: len(s.keys)})
		return nil
	case '"':
		return s.text()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number()
	}
	return s.unexpected("where a value belongs")
}

func (s *scanner) literal(word string) error {
	if len(s.in)-s.at < len(word) || string(s.in[s.at:s.at+len(word)]) != word {
		return s.unexpected("where a value belongs")
	}
	s.at += len(word)
	s.out = append(s.out, word...)
	return nil
}

func (s *scanner) space() {
	for s.at < len(s.in) {
		switch s.in[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) fail(kind ContentKind, reason string) error {
	return &ContentError{Kind: kind, Reason: reason, Offset: int64(s.at)}
}

// unexpected names the character at hand.
func (s *scanner) unexpected(where string) error {
	if s.at >= len(s.in) {
		return s.fail(ContentSyntax, "it ends "+where)
	}
	r, size := utf8.DecodeRune(s.in[s.at:])
	if r == utf8.RuneError && size == 1 {
		return s.fail(ContentText, "it is not valid UTF-8")
	}
	return s.fail(ContentSyntax, fmt.Sprintf("unexpected %q %s", r, where))
}

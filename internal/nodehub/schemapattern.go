package nodehub

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pattern is a regular expression that knows how large its program is.
type pattern struct {
	*regexp.Regexp
	size    int
	program *syntax.Prog
}

// patterns compiles the regular expressions of one schema, each once and within the bounds. It is safe for
// concurrent use.
type patterns struct {
	mu   sync.Mutex
	made map[string]pattern
	size int // of all programs
	text int // bytes of all texts
}

func (p *patterns) compile(text string) (jsonschema.Regexp, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.made[text]; ok {
		return known, nil
	}
	if p.text += len(text); p.text > maxPatternsText {
		return nil, fmt.Errorf("its patterns have more than %d bytes together", maxPatternsText)
	}
	tree, size, err := parsePattern(text)
	if err != nil {
		return nil, err
	}
	if p.size += size; p.size > maxPatternsSize {
		return nil, fmt.Errorf("its patterns have more than %d steps together", maxPatternsSize)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if p.made == nil {
		p.made = map[string]pattern{}
	}
	p.made[text] = pattern{re, size, program}
	return p.made[text], nil
}

// parsePattern reads a regular expression that is within the bounds, and estimates the size of its program.
func parsePattern(text string) (tree *syntax.Regexp, size int, err error) {
	if len(text) > maxPatternSize {
		return nil, 0, fmt.Errorf("a pattern of %d bytes; at most %d are allowed", len(text), maxPatternSize)
	}
	if tree, err = syntax.Parse(text, syntax.Perl); err != nil {
		return nil, 0, err
	}
	if size = programSize(tree); size > maxPatternSize {
		return nil, 0, fmt.Errorf("the pattern %q has %d steps; at most %d are allowed: repeat less", text, size, maxPatternSize)
	}
	return tree, size, nil
}

// programSize estimates the instructions of a regular expression from above.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	if re.Op == syntax.OpCharClass {
		size = 1 + len(re.Rune)/1024 // one step, however many letters it knows
	}
	for _, sub := range re.Sub {
		size += 1 + programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		// The parser bounds the product of nested repetitions, so this does not overflow.
		size *= max(re.Min, re.Max, 1)
	}
	return size
}

// matcher finds out whether a text has a match, and counts each step: the library's machines can neither be
// stopped nor asked what they did. It is a simulation of the automaton, whose steps are at most the size of
// the program for each letter and mostly a few.
type matcher struct {
	seen  []int // by instruction: the round in which it was met
	round int
	here  []uint32 // instructions that wait for the next letter
	next  []uint32 // where the letter leads
	stack []uint32
}

// match tells whether the text has a match of the program. It calls step with the steps of each letter.
func (m *matcher) match(program *syntax.Prog, text string, step func(int)) bool {
	if len(m.seen) < len(program.Inst) {
		m.seen = make([]int, len(program.Inst))
	}
	anchored := program.StartCond()&syntax.EmptyBeginText != 0
	m.next = m.next[:0]
	before := rune(-1)
	for at := 0; ; {
		letter, size := rune(-1), 0
		if at < len(text) {
			letter, size = utf8.DecodeRuneInString(text[at:])
		}
		m.round++
		m.here = m.here[:0]
		around := syntax.EmptyOpContext(before, letter)
		if at == 0 || !anchored {
			m.next = append(m.next, uint32(program.Start))
		}
		steps, matched := m.follow(program, around)
		step(steps + len(m.here))
		if matched {
			return true
		}
		if size == 0 || anchored && len(m.here) == 0 {
			return false
		}
		m.next = m.next[:0]
		for _, pc := range m.here {
			if i := &program.Inst[pc]; i.MatchRune(letter) {
				m.next = append(m.next, i.Out)
			}
		}
		at += size
		before = letter
	}
}

// follow goes from where the last letter led, over what takes no letter.
func (m *matcher) follow(program *syntax.Prog, around syntax.EmptyOp) (steps int, matched bool) {
	m.stack = append(m.stack[:0], m.next...)
	for len(m.stack) > 0 {
		pc := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		steps++
		if m.seen[pc] == m.round {
			continue
		}
		m.seen[pc] = m.round
		switch i := &program.Inst[pc]; i.Op {
		case syntax.InstMatch:
			return steps, true
		case syntax.InstAlt, syntax.InstAltMatch:
			m.stack = append(m.stack, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			m.stack = append(m.stack, i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^around == 0 {
				m.stack = append(m.stack, i.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			m.here = append(m.here, pc)
		case syntax.InstFail:
		}
	}
	return steps, false
}

// SPDX-License-Identifier: Apache-2.0

package path

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"kinf/internal/msgpack"
)

// parser reads a path from text[at:end]. A syntax error panics with a syntaxError.
type parser struct {
	text    string
	at, end int
	path    *Path
	cost    *cost // of all parts of the path
	depth   int   // of filters and unions around this path
	blanks  bool  // may stand between steps: in braces and filters
}

// cost counts what could take a path for ever.
type cost struct {
	ways     int // combinations of the members of all unions
	descents int // steps ".."
}

type syntaxError struct{ error }

// Parse parses a path. An error names the character.
func Parse(text string) (path *Path, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			path, err = nil, e.error
		}
	}()
	p := &parser{text: text, end: len(text), path: &Path{}, cost: &cost{ways: 1}}
	if p.take("{") {
		if p.at == p.end || text[p.end-1] != '}' {
			p.fail("expected '}' at the end")
		}
		p.end--
		p.blanks = true
	}
	start := p.at
	p.steps()
	if p.at < p.end && p.at > start {
		p.fail("expected '.' or '['")
	}
	if len(p.path.steps) == 0 {
		p.fail("expected a key")
	}
	var to strings.Builder
	p.path.write(&to, true)
	p.path.text = to.String()
	return p.path, nil
}

func (p *parser) fail(what string) {
	panic(syntaxError{fmt.Errorf("field path '%s', character %d: %s", p.text, p.at+1, what)})
}

func (p *parser) peek() byte {
	if p.at < p.end {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) take(s string) bool {
	found := strings.HasPrefix(p.text[p.at:p.end], s)
	if found {
		p.at += len(s)
	}
	return found
}

func (p *parser) skipBlanks() {
	for p.blanks && (p.peek() == ' ' || p.peek() == '\t') {
		p.at++
	}
}

func (p *parser) add(s step) *step {
	if len(p.path.steps) == stepsMost {
		p.fail("too many steps")
	}
	p.path.steps = append(p.path.steps, s)
	return &p.path.steps[len(p.path.steps)-1]
}

// ---- steps ----------------------------------------------------------------------

// plainKey parses a key as in a.b or kubectl's labels.app\.kubernetes\.io/name.
func (p *parser) plainKey() {
	var key []byte
	start := p.at
	for ; isPlain(p.peek()) || p.peek() == '\\'; p.at++ {
		if p.text[p.at] == '\\' {
			if p.at++; p.at == p.end {
				p.fail("nothing follows the backslash")
			}
		}
		key = append(key, p.text[p.at])
	}
	if p.at == start {
		p.fail("expected a key")
	}
	p.add(step{kind: stepKey, key: string(key)})
}

// quotedKey parses the rest of ['key'], with \' and \\ in it.
func (p *parser) quotedKey(quote string) {
	var key []byte
	for ; p.at < p.end && p.text[p.at] != quote[0]; p.at++ {
		if p.text[p.at] == '\\' {
			if p.at++; p.at == p.end {
				break
			}
		}
		key = append(key, p.text[p.at])
	}
	if !p.take(quote) {
		p.fail("the quote does not end")
	}
	p.add(step{kind: stepKey, key: string(key)})
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number parses an optional number.
func (p *parser) number(to *int64) bool {
	negative := p.take("-")
	if !isDigit(p.peek()) {
		if negative {
			p.fail("expected a number")
		}
		return false
	}
	var n int64
	for ; isDigit(p.peek()); p.at++ {
		if n = n*10 + int64(p.peek()-'0'); n > math.MaxUint32 {
			p.fail("the number is too large")
		}
	}
	if negative {
		n = -n
	}
	*to = n
	return true
}

// member parses one member of a bracket, up to "]" or ",".
func (p *parser) member() {
	switch {
	case p.take("*"):
		p.add(step{kind: stepAll})
		return
	case p.take("'"):
		p.quotedKey("'")
		return
	case p.take(`"`):
		p.quotedKey(`"`)
		return
	}
	s := step{kind: stepSlice, to: math.MaxInt64, by: 1}
	s.hasFrom = p.number(&s.from)
	if !p.take(":") {
		if !s.hasFrom {
			p.fail("expected '*', a number, a slice, a quoted key, a filter '?(...)' or KEY=VALUE")
		}
		p.add(step{kind: stepIndex, from: s.from})
		return
	}
	p.number(&s.to)
	if p.take(":") {
		p.number(&s.by)
	}
	if s.by <= 0 {
		p.fail("the step of a slice must be above 0")
	}
	p.add(s)
}

// part parses with fn into a new path, from this position.
func (p *parser) part(fn func(*parser)) *Path {
	inner := *p
	if inner.depth++; inner.depth > nestedMost {
		p.fail("too many filters within each other")
	}
	inner.path = &Path{}
	fn(&inner)
	p.at = inner.at
	return inner.path
}

// tryPath parses text[from:to] as a path; nil: it is none.
func (p *parser) tryPath(from, to int) (path *Path) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(syntaxError); !ok {
				panic(r)
			}
			path = nil
		}
	}()
	inner := *p
	inner.at, inner.end = from, to
	path = inner.part((*parser).steps)
	if inner.at < to {
		return nil
	}
	return path
}

func (p *parser) unionMember() member {
	p.skipBlanks()
	start := p.at
	m := member{path: p.part((*parser).member)}
	if c := p.text[start]; (c == '\'' || c == '"') && strings.Contains(p.text[start:p.at], ".") {
		m.otherwise = p.tryPath(start+1, p.at-1)
		m.quoted = p.text[start:p.at]
	}
	p.skipBlanks()
	return m
}

func (p *parser) union() {
	s := step{kind: stepUnion}
	for more := true; more; more = p.take(",") {
		s.union = append(s.union, p.unionMember())
	}
	p.add(s)
	if len(s.union) > waysMost/p.cost.ways {
		p.fail("the members of its unions have too many combinations")
	}
	p.cost.ways *= len(s.union)
}

// constant parses a number, true, false or a quoted text.
func (p *parser) constant() msgpack.Value {
	if c := p.peek(); c == '"' || c == '\'' {
		text, ok := p.unquote()
		if !ok {
			p.fail("the quote does not end")
		}
		return msgpack.TextOf(text)
	}
	start := p.at
	for c := p.peek(); isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c == '+'; c = p.peek() {
		p.at++
	}
	word := p.text[start:p.at]
	if word == "true" || word == "false" {
		return msgpack.BoolOf(word == "true")
	}
	if !msgpack.IsNumber(word) {
		p.at = start
		p.fail("expected a path, a number, true, false or a quoted text")
	}
	return msgpack.NumberOf(word)
}

func (p *parser) operand() (o operand) {
	p.skipBlanks()
	if c := p.peek(); c == '@' || c == '$' || c == '.' || c == '[' {
		o.path = p.part((*parser).steps)
	} else {
		o.constant = p.constant()
	}
	p.skipBlanks()
	return o
}

// filter parses the rest of [?(...)].
func (p *parser) filter() {
	f := &filter{left: p.operand()}
	p.add(step{kind: stepFilter, filter: f})
	if p.take(")") {
		return
	}
	for i := len(operators) - 1; i > opExists && f.operator == opExists; i-- { // <= before <
		if p.take(operators[i]) {
			f.operator = i
		}
	}
	if f.operator == opExists {
		p.fail("expected ')' or one of == != < <= > >=")
	}
	f.right = p.operand()
	if !p.take(")") {
		p.fail("expected ')'")
	}
}

// shortFilter parses [key=value], if it is one.
func (p *parser) shortFilter() bool {
	at := p.at
	for at < p.end && (isPlain(p.text[at]) || p.text[at] == '.') {
		at++
	}
	if at == p.at || at == p.end || p.text[at] != '=' {
		return false
	}
	key := *p
	key.end = at
	f := &filter{left: operand{path: key.part((*parser).steps)}, operator: opEqual}
	p.add(step{kind: stepFilter, filter: f})
	p.at = at + 1
	p.take("=")
	if c := p.peek(); c == '"' || c == '\'' {
		f.right.constant = p.constant()
		return true
	}
	start := p.at
	for p.at < p.end && p.text[p.at] != ']' {
		p.at++
	}
	f.right.constant = msgpack.TextOf(p.text[start:p.at])
	return true
}

// isUnion tells whether a comma stands before the bracket's end.
func (p *parser) isUnion() bool {
	quote := byte(0)
	for at := p.at; at < p.end; at++ {
		switch c := p.text[at]; {
		case quote != 0 && c == '\\':
			at++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ',':
			return true
		case c == ']':
			return false
		}
	}
	return false
}

func (p *parser) bracket() {
	blanks := p.blanks
	p.blanks = true
	switch {
	case p.take("?("):
		p.filter()
	case p.isUnion():
		p.union()
	default:
		if !p.shortFilter() {
			p.member()
		}
	}
	p.blanks = blanks
	if !p.take("]") {
		p.fail("expected ']'")
	}
}

// dot parses the rest after one dot or two.
func (p *parser) dot() {
	if p.take(".") {
		if n := len(p.path.steps); n > 0 && p.path.steps[n-1].kind == stepDescent {
			p.fail("'..' twice")
		}
		if p.cost.descents++; p.cost.descents > descentsMost {
			p.fail("too many steps '..'")
		}
		p.add(step{kind: stepDescent})
		if c := p.peek(); !isPlain(c) && c != '*' && c != '\\' {
			return
		}
	}
	if p.take("*") {
		p.add(step{kind: stepAll})
		return
	}
	p.plainKey()
}

// steps parses steps up to something else.
func (p *parser) steps() {
	p.skipBlanks()
	if (p.take("$") || p.take("@")) && isPlain(p.peek()) {
		p.at-- // a key that begins with it
	}
	for first := true; ; first = false {
		before := p.at
		p.skipBlanks()
		c := p.peek()
		switch {
		case p.take("["):
			p.bracket()
		case p.take("."):
			next := p.peek()
			if first && (next == '[' || next == 0 || next == ')' || next == ' ') {
				continue // the whole value, or a path beginning with a bracket
			}
			p.dot()
		case first && (isPlain(c) || c == '\\'): // the first "." is optional
			p.plainKey()
		default:
			if c != 0 {
				p.at = before
			}
			return
		}
	}
}

// ---- quoted texts -----------------------------------------------------------------

// unquote parses a text between quotes. \n, \t, \x41, \u0041 and the like stand for characters.
func (p *parser) unquote() (string, bool) {
	quote := p.peek()
	var text []byte
	for p.at++; p.at < p.end && p.text[p.at] != quote; {
		c := p.text[p.at]
		p.at++
		if c != '\\' || p.at == p.end {
			text = append(text, c)
			continue
		}
		c = p.text[p.at]
		p.at++
		digits := map[byte]int{'x': 2, 'u': 4}[c]
		if digits == 0 {
			i := strings.IndexByte("abfnrtv\\'\"", c)
			if i < 0 {
				return "", false
			}
			text = append(text, "\a\b\f\n\r\t\v\\'\""[i])
			continue
		}
		if p.at+digits > p.end {
			return "", false
		}
		code, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
		if err != nil {
			return "", false
		}
		p.at += digits
		if c == 'x' {
			text = append(text, byte(code))
		} else {
			text = utf8.AppendRune(text, rune(code))
		}
	}
	return string(text), p.take(string(quote))
}

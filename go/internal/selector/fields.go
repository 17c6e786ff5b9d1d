// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const ageKey = "age" // the key for the time since an object's creation

// bracketSize returns the size of a path's bracket at the beginning; 0 if it does not end.
func bracketSize(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// termEnd returns the end of the first term: a comma without a backslash, and outside of brackets.
func termEnd(s string) int {
	inKey := true
	for i := 0; i < len(s); {
		c, size := s[i], 1
		switch {
		case c == ',':
			return i
		case c == '[' && inKey:
			size = max(bracketSize(s[i:]), 1)
		case c == '\\' && i+1 < len(s):
			size = 2
		case c == '=' || c == '<' || c == '>':
			inKey = false
		}
		i += size
	}
	return len(s)
}

// findOperator returns the offset of a term's operator, or its length.
func findOperator(term string) int {
	at := 0
	for at < len(term) {
		switch c := term[at]; {
		case c == '=' || c == '<' || c == '>' || c == '!' && strings.HasPrefix(term[at:], "!="):
			return at
		case c == '[':
			at += max(bracketSize(term[at:]), 1)
		default:
			at++
		}
	}
	return at
}

func unescape(selector, text string) (string, error) {
	var to []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '=' {
			return "", fmt.Errorf("field selector '%s': a '=' within a value is written '\\='", selector)
		}
		if c == '\\' {
			i++
			if i == len(text) || strings.IndexByte(`\,=`, text[i]) < 0 {
				_, size := utf8.DecodeRuneInString(text[min(i, len(text)):])
				return "", fmt.Errorf("field selector '%s': only '\\', ',' and '=' are written with a backslash before them, not '%s'",
					selector, text[i:i+size])
			}
			c = text[i]
		}
		to = append(to, c)
	}
	return string(to), nil
}

func operatorOf(text string) (op Op, size int) {
	hasEquals := strings.HasPrefix(text[1:], "=")
	size = 1
	if hasEquals {
		size = 2
	}
	switch {
	case text[0] == '!':
		return NotIn, size
	case text[0] == '<' && hasEquals:
		return LessEqual, size
	case text[0] == '<':
		return Less, size
	case text[0] == '>' && hasEquals:
		return GreaterEqual, size
	case text[0] == '>':
		return Greater, size
	}
	return In, size
}

// parseTerm parses KEY=VALUE and the like; nil: it is no requirement.
func parseTerm(selector, term string) (*Requirement, error) {
	at := findOperator(term)
	if at == len(term) {
		return nil, fmt.Errorf("field selector '%s': '%s' has none of = != < <= > >=", selector, term)
	}
	op, size := operatorOf(term[at:])
	value, err := unescape(selector, term[at+size:])
	if err != nil {
		return nil, err
	}
	key := strings.TrimLeft(term[:at], " ")
	if op.compares() {
		key, value = strings.TrimRight(key, " "), strings.Trim(value, " ")
	}
	if key == "" && value == "" { // as in the API server
		return nil, nil
	}
	if key == ageKey && !op.compares() {
		return nil, fmt.Errorf("field selector '%s': compare 'age', the time since an object was created, with < or >; "+
			"a field of that name is '.age'", selector)
	}
	r := &Requirement{Key: key, Op: op, Values: []string{value}}
	name := key
	if op.compares() {
		if r.limit, err = readLimit(key, value); err != nil {
			return nil, fmt.Errorf("field selector '%s': %w", selector, err)
		}
		if r.limit.kind == limitAge {
			name = "metadata.creationTimestamp"
		}
	}
	if r.Field, err = parseField(name); err != nil {
		return nil, fmt.Errorf("field selector '%s': %w", selector, err)
	}
	return r, nil
}

// ParseFields parses a field selector: terms separated by commas, each KEY=VALUE, KEY==VALUE, KEY!=VALUE
// or a comparison with < <= > >=. In a value a backslash stands before `\`, `,` and `=`. A key is a
// field path; commas and operators in its brackets are its own.
func ParseFields(text string) (all []Requirement, err error) {
	for rest := text; rest != ""; {
		end := termEnd(rest)
		if end > 0 { // an empty term is no requirement
			r, err := parseTerm(text, rest[:end])
			if err != nil {
				return nil, err
			}
			if r != nil {
				all = append(all, *r)
			}
		}
		rest = rest[min(end+1, len(rest)):]
	}
	return all, nil
}

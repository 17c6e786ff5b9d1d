// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	nameMost   = 63
	prefixMost = 253
)

const (
	nameRule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
		"alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " +
		"validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
	prefixRule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' " +
		"or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
		`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	valueRule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and " +
		"must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used " +
		"for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

// ---- what keys and values may look like -------------------------------------------

func isLowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isName(s string) bool {
	for i := range len(s) {
		c, isEdge := s[i], i == 0 || i+1 == len(s)
		if !isLowerOrDigit(c) && !(c >= 'A' && c <= 'Z') && (isEdge || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return s != ""
}

func isSubdomain(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		for i := range len(part) {
			if !isLowerOrDigit(part[i]) && (part[i] != '-' || i == 0 || i+1 == len(part)) {
				return false
			}
		}
		if part == "" {
			return false
		}
	}
	return true
}

// checkKey returns what is wrong with the key of a label.
func checkKey(key string) (complaints []string) {
	prefix, name, hasPrefix := strings.Cut(key, "/")
	if !hasPrefix {
		prefix, name = "", key
	}
	if strings.Contains(name, "/") {
		return []string{"a valid label key " + nameRule + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"}
	}
	add := func(text string) { complaints = append(complaints, text) }
	if hasPrefix && prefix == "" {
		add("prefix part must be non-empty")
	} else if len(prefix) > prefixMost {
		add("prefix part must be no more than 253 bytes")
	}
	if prefix != "" && !isSubdomain(prefix) {
		add("prefix part " + prefixRule)
	}
	if name == "" {
		add("name part must be non-empty")
	} else if len(name) > nameMost {
		add("name part must be no more than 63 bytes")
	}
	if !isName(name) {
		add("name part " + nameRule)
	}
	return complaints
}

func checkValues(r *Requirement) error {
	var all []string
	for i, value := range r.Values {
		if _, err := strconv.ParseInt(value, 10, 64); err != nil && r.Op.compares() {
			all = append(all, fmt.Sprintf("values[%d]: Invalid value: %s: for 'Gt', 'Lt' operators, the value must be an integer",
				i, quoted(value)))
		}
		var complaints []string
		if len(value) > nameMost {
			complaints = append(complaints, "must be no more than 63 bytes")
		}
		if value != "" && !isName(value) {
			complaints = append(complaints, valueRule)
		}
		if len(complaints) > 0 {
			all = append(all, fmt.Sprintf("values[%d][%s]: Invalid value: %s: %s", i, r.Key, quoted(value),
				strings.Join(complaints, "; ")))
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return errors.New(all[0])
	}
	return fmt.Errorf("[%s]", strings.Join(all, ", "))
}

// ---- tokens -----------------------------------------------------------------------

// labelsParser reads tokens: a word, or one of ( ) , ! = == != > <, "" at the end.
type labelsParser struct {
	rest   string
	token  string // the next one
	isWord bool
}

func isSpecial(c byte) bool { return strings.IndexByte("=!(),><", c) >= 0 }
func isBlank(c byte) bool   { return strings.IndexByte(" \t\r\n", c) >= 0 }

// take returns the current token, and reads the next.
func (p *labelsParser) take() (token string, isWord bool) {
	token, isWord = p.token, p.isWord
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	size := 0
	p.isWord = p.rest != "" && !isSpecial(p.rest[0])
	switch {
	case p.isWord:
		for size < len(p.rest) && !isSpecial(p.rest[size]) && !isBlank(p.rest[size]) {
			size++
		}
	case strings.HasPrefix(p.rest, "==") || strings.HasPrefix(p.rest, "!="):
		size = 2
	case p.rest != "":
		size = 1
	}
	p.token, p.rest = p.rest[:size], p.rest[size:]
	return token, isWord
}

func unexpected(token, expected string) error {
	return fmt.Errorf("found '%s', expected: %s", token, expected)
}

// ---- grammar ----------------------------------------------------------------------

// members parses the values of a set up to its ")". An empty item between commas is "".
func (p *labelsParser) members(r *Requirement) error {
	for {
		token, isWord := p.take()
		if isWord {
			r.Values = append(r.Values, token)
			if p.token == ")" {
				return nil
			}
			if p.token != "," {
				return unexpected(p.token, "',' or ')'")
			}
			continue
		}
		if token != "," {
			return unexpected(token, "',', or identifier")
		}
		if len(r.Values) == 0 || p.token == ")" || p.token == "," {
			r.Values = append(r.Values, "")
		}
		if p.token == ")" {
			return nil
		}
	}
}

func (p *labelsParser) set(r *Requirement) (err error) {
	if token, _ := p.take(); token != "(" {
		return fmt.Errorf("found '%s' expected: '('", token) // as the API server, without a comma
	}
	switch {
	case p.isWord || p.token == ",":
		err = p.members(r)
	case p.token == ")":
		r.Values = []string{""}
	default:
		return unexpected(p.token, "',', ')' or identifier")
	}
	p.take()
	return err
}

func (p *labelsParser) operator(r *Requirement) error {
	token, _ := p.take()
	switch token {
	case "in", "notin":
		if r.Op = In; token == "notin" {
			r.Op = NotIn
		}
		return p.set(r)
	case "=", "==":
		r.Op = In
	case "!=":
		r.Op = NotIn
	case ">":
		r.Op = Greater
	case "<":
		r.Op = Less
	default:
		return unexpected(token, "in, notin, =, ==, !=, gt, lt")
	}
	if p.isBare() {
		r.Values = []string{""}
		return nil
	}
	value, isWord := p.take()
	if !isWord {
		return unexpected(value, "identifier")
	}
	r.Values = []string{value}
	return nil
}

func (p *labelsParser) isBare() bool { return p.token == "" || p.token == "," }

func (p *labelsParser) requirement() (r Requirement, err error) {
	r.Op = Exists
	if p.token == "!" {
		r.Op = NotExists
		p.take()
	}
	key, isWord := p.take()
	if !isWord {
		return r, unexpected(key, "identifier")
	}
	if complaints := checkKey(key); len(complaints) > 0 {
		return r, fmt.Errorf("<nil>: Invalid value: %s: %s", quoted(key), strings.Join(complaints, "; "))
	}
	r.Key = key
	if r.Op == Exists && !p.isBare() {
		if err := p.operator(&r); err != nil {
			return r, err
		}
	}
	slices.Sort(r.Values)
	r.Values = slices.Compact(r.Values)
	return r, checkValues(&r)
}

func (p *labelsParser) begins() bool { return p.isWord || p.token == "!" }

// ParseLabels parses a label selector; an empty one has no requirement.
func ParseLabels(text string) (all []Requirement, err error) {
	p := &labelsParser{rest: text}
	p.take() // reads the first
	if p.token == "" {
		return nil, nil
	}
	if !p.begins() {
		return nil, unexpected(p.token, "!, identifier, or 'end of string'")
	}
	for {
		r, err := p.requirement()
		if err != nil {
			return nil, fmt.Errorf("unable to parse requirement: %w", err)
		}
		all = append(all, r)
		token, _ := p.take()
		if token == "" {
			return all, nil
		}
		if token != "," {
			return nil, unexpected(token, "',' or 'end of string'")
		}
		if !p.begins() {
			return nil, unexpected(p.token, "identifier after ','")
		}
	}
}

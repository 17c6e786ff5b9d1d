// SPDX-License-Identifier: Apache-2.0

package path

import (
	"cmp"
	"strings"

	"kinf/internal/msgpack"
)

// found is called for each value until it returns false.
type found func(msgpack.Value) bool

// Eval calls fn for each value that the path finds from a value on, until fn returns false. It panics
// as msgpack.Value does.
func (p *Path) Eval(from msgpack.Value, fn func(msgpack.Value) bool) bool {
	return p.followAll(0, []msgpack.Value{from}, fn)
}

// followAll follows the path from step i. A union gives the values of its first member for all its
// input, then of its second.
func (p *Path) followAll(i int, from []msgpack.Value, fn found) bool {
	to := i
	for to < len(p.steps) && p.steps[to].kind != stepUnion {
		to++
	}
	if to == len(p.steps) {
		for _, v := range from {
			if !p.follow(i, to, v, fn) {
				return false
			}
		}
		return true
	}
	var before, after []msgpack.Value
	keep := func(v msgpack.Value) bool { before = append(before, v); return true }
	for _, v := range from {
		p.follow(i, to, v, keep)
	}
	keep = func(v msgpack.Value) bool { after = append(after, v); return true }
	for _, m := range p.steps[to].union {
		for _, v := range before {
			n := len(after)
			m.path.Eval(v, keep)
			if len(after) == n && m.otherwise != nil {
				m.otherwise.Eval(v, keep)
			}
		}
	}
	return p.followAll(to+1, after, fn)
}

// follow follows the steps from i to the one before to, which have no union.
func (p *Path) follow(i, to int, here msgpack.Value, fn found) bool {
	for ; i < to; i++ {
		s, ok := &p.steps[i], false
		switch s.kind {
		case stepKey:
			here, ok = here.Find(s.key)
		case stepIndex:
			here, ok = item(here, s.from)
		case stepDescent:
			return p.descend(i, to, here, fn)
		default:
			return p.followItems(i, to, here, fn)
		}
		if !ok {
			return true
		}
	}
	return fn(here)
}

func item(here msgpack.Value, number int64) (at msgpack.Value, ok bool) {
	if !here.IsArray() {
		return at, false
	}
	if number < 0 {
		number += int64(here.Len())
	}
	if number < 0 || number >= int64(here.Len()) {
		return at, false
	}
	here.Items(func(_ string, v msgpack.Value) bool {
		at, ok = v, true
		number--
		return number >= 0
	})
	return at, ok
}

// followItems follows the rest from each item that passes step i.
func (p *Path) followItems(i, to int, here msgpack.Value, fn found) bool {
	s := &p.steps[i]
	if !here.IsArray() && (s.kind != stepAll || !here.IsMap()) {
		return true
	}
	from, end := s.from, s.to
	if s.kind == stepSlice {
		n := int64(here.Len())
		if from < 0 {
			from = max(from+n, 0)
		}
		if end < 0 {
			end += n
		}
	}
	k := int64(-1)
	return here.Items(func(_ string, v msgpack.Value) bool {
		k++
		if s.kind == stepSlice && (k < from || k >= end || (k-from)%s.by != 0) || s.kind == stepFilter && !s.filter.passes(v) {
			return true
		}
		return p.follow(i+1, to, v, fn)
	})
}

// descend follows the path from its step "..": the value, and each map, list and text in it. Before a
// key only maps count: the outer ones first.
func (p *Path) descend(i, to int, here msgpack.Value, fn found) bool {
	text, isScalar := here.Text()
	if isScalar {
		return !here.IsString() || text == "" || p.follow(i+1, to, here, fn)
	}
	if here.Len() == 0 {
		return true
	}
	return p.follow(i+1, to, here, fn) && here.Items(func(_ string, v msgpack.Value) bool { return p.descend(i, to, v, fn) })
}

// ---- filters ----------------------------------------------------------------------

func (o *operand) each(item msgpack.Value, fn found) bool {
	if o.path != nil {
		return o.path.Eval(item, fn)
	}
	return fn(o.constant)
}

// passes tells whether the filter holds for an item: one matching value is enough.
func (f *filter) passes(item msgpack.Value) bool {
	if f.operator == opExists {
		return !f.left.each(item, func(msgpack.Value) bool { return false })
	}
	return !f.left.each(item, func(left msgpack.Value) bool {
		return f.right.each(item, func(right msgpack.Value) bool { return !holds(f.operator, left, right) })
	})
}

func holds(operator int, left, right msgpack.Value) bool {
	order, ok := compare(left, right)
	if !ok {
		return operator == opNotEqual
	}
	switch operator {
	case opEqual:
		return order == 0
	case opNotEqual:
		return order != 0
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	}
	return order >= 0
}

// compare compares two values of one type; a text may stand for a number or a boolean.
func compare(a, b msgpack.Value) (order int, ok bool) {
	if x, is := a.Uint(); is { // exact beyond 2^53
		if y, also := b.Uint(); also {
			return cmp.Compare(x, y), true
		}
	}
	if a.IsString() && b.IsString() {
		x, _ := a.Text()
		y, _ := b.Text()
		return strings.Compare(x, y), true
	}
	if x, is := a.Float(); is {
		if y, also := b.Float(); also {
			return cmp.Compare(x, y), true
		}
	}
	if x, is := a.Bool(); is {
		if y, also := b.Bool(); also {
			return number(x) - number(y), true
		}
	}
	return 0, a.IsNull() && b.IsNull()
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ---- values -----------------------------------------------------------------------

// Texts calls fn for the text of each scalar that the path finds, "" for null.
func (p *Path) Texts(from msgpack.Value, fn func(text string, isNull bool) bool) bool {
	return p.Eval(from, func(v msgpack.Value) bool {
		text, ok := v.Text()
		return !ok || fn(text, v.IsNull())
	})
}

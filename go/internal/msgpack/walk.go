// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"math"
	"strconv"
)

// A Value is a place in a document, read there without decoding the rest. Its methods panic if the
// document is malformed; Walk turns that into an error.
type Value struct {
	b     []byte // from the value to the end of the document
	depth int
}

// Walk calls fn with the whole document.
func Walk(body []byte, fn func(Value)) (err error) {
	defer catch(&err)
	if len(body) == 0 {
		return ErrMalformed
	}
	fn(Value{b: body})
	return nil
}

// The values of constants, no part of a document. NumberOf is for a number of JSON's grammar.
func TextOf(s string) Value   { return Value{b: encodeString(nil, s)} }
func NumberOf(s string) Value { return Value{b: encodeNumber(nil, s)} }
func BoolOf(b bool) Value     { return Value{b: encodeBool(nil, b)} }

func (v Value) decoder() decoder { return decoder{b: v.b} }
func (v Value) kind() kind       { d := v.decoder(); return d.kind() }

// item is the value at the decoder's place, inside of v.
func (v Value) item(d *decoder) Value {
	if v.depth == depthMost {
		fail(ErrMalformed)
	}
	return Value{d.b[d.i:], v.depth + 1}
}

// IsNone tells whether there is no value; it has no other methods then.
func (v Value) IsNone() bool   { return v.b == nil }
func (v Value) IsNull() bool   { return v.kind() == kindNil }
func (v Value) IsMap() bool    { return v.kind() == kindMap }
func (v Value) IsArray() bool  { return v.kind() == kindArray }
func (v Value) IsString() bool { return v.kind() == kindString }

// Find finds a member of a map; false also if v is no map.
func (v Value) Find(key string) (Value, bool) {
	if !v.IsMap() {
		return Value{}, false
	}
	d := v.decoder()
	for n := d.mapLength(); n > 0; n-- {
		if d.str() == key {
			return v.item(&d), true
		}
		d.skip()
	}
	return Value{}, false
}

// Items calls fn for the items of a map or an array, until it returns false. The keys of an array are
// empty.
func (v Value) Items(fn func(key string, item Value) bool) bool {
	d := v.decoder()
	isMap, n := v.IsMap(), 0
	if isMap {
		n = d.mapLength()
	} else if v.IsArray() {
		n = d.arrayLength()
	}
	for ; n > 0; n-- {
		key := ""
		if isMap {
			key = d.str()
		}
		if !fn(key, v.item(&d)) {
			return false
		}
		d.skip()
	}
	return true
}

// Len returns the number of items; 0 for scalars.
func (v Value) Len() int {
	d := v.decoder()
	switch d.kind() {
	case kindMap:
		return d.mapLength()
	case kindArray:
		return d.arrayLength()
	}
	return 0
}

// Text returns the text of a scalar as indexes and selectors have it: a string as it is, a number in its
// shortest form, "" for null; false for maps and arrays.
func (v Value) Text() (string, bool) {
	d := v.decoder()
	switch d.kind() {
	case kindNil:
		return "", true
	case kindBool:
		return strconv.FormatBool(d.next() == 0xc3), true
	case kindInt:
		return strconv.FormatInt(d.integer(), 10), true
	case kindUint:
		return strconv.FormatUint(uint64(d.integer()), 10), true
	case kindFloat:
		return string(appendFloat(nil, d.float())), true
	case kindNumber:
		return d.number(), true
	case kindString:
		return d.str(), true
	}
	return "", false
}

// Float returns a number, also one in a string.
func (v Value) Float() (float64, bool) {
	d := v.decoder()
	switch d.kind() {
	case kindInt:
		return float64(d.integer()), true
	case kindUint:
		return float64(uint64(d.integer())), true
	case kindFloat:
		return d.float(), true
	case kindNumber, kindString:
		text, _ := v.Text()
		if !IsNumber(text) {
			return 0, false
		}
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil || math.IsInf(f, 0)
	}
	return 0, false
}

// Uint returns an integer that is not below 0.
func (v Value) Uint() (uint64, bool) {
	d := v.decoder()
	k := d.kind()
	if k != kindInt && k != kindUint {
		return 0, false
	}
	i := d.integer()
	return uint64(i), k == kindUint || i >= 0
}

// Bool returns a boolean, also one in a string.
func (v Value) Bool() (value, ok bool) {
	if k := v.kind(); k != kindBool && k != kindString {
		return false, false
	}
	text, _ := v.Text()
	return text == "true", text == "true" || text == "false"
}

// IsNumber tells whether a text is exactly one number of JSON's grammar.
func IsNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	take := func(chars string) bool {
		for i := range len(chars) {
			if s != "" && s[0] == chars[i] {
				s = s[1:]
				return true
			}
		}
		return false
	}
	take("-")
	if !take("0") && !digits() || take(".") && !digits() {
		return false
	}
	if take("eE") {
		take("+-")
		if !digits() {
			return false
		}
	}
	return s == ""
}

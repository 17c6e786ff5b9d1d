// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// json returns the JSON of the next value.
func (d *decoder) json() []byte { return d.appendJSON(nil) }

// JSON returns the JSON of a document, on one line.
func JSON(body []byte) (text []byte, err error) {
	defer catch(&err)
	d := decoder{b: body}
	text = d.appendJSON(make([]byte, 0, len(body)+len(body)/4))
	if d.i != len(body) {
		return nil, ErrMalformed
	}
	return text, nil
}

func (d *decoder) appendJSON(to []byte) []byte {
	switch d.kind() {
	case kindNil:
		d.i++
		return append(to, "null"...)
	case kindBool:
		return strconv.AppendBool(to, d.next() == 0xc3)
	case kindInt:
		return strconv.AppendInt(to, d.integer(), 10)
	case kindUint:
		return strconv.AppendUint(to, uint64(d.integer()), 10)
	case kindFloat:
		return appendFloat(to, d.float())
	case kindNumber:
		return append(to, d.number()...)
	case kindString:
		return appendString(to, d.str())
	case kindArray:
		d.enter()
		to = append(to, '[')
		for i, n := 0, d.arrayLength(); i < n; i++ {
			if i > 0 {
				to = append(to, ',')
			}
			to = d.appendJSON(to)
		}
		d.depth--
		return append(to, ']')
	}
	d.enter()
	to = append(to, '{')
	for i, n := 0, d.mapLength(); i < n; i++ {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendString(to, d.str()), ':')
		to = d.appendJSON(to)
	}
	d.depth--
	return append(to, '}')
}

func appendFloat(to []byte, f float64) []byte {
	format := byte('f')
	if magnitude := math.Abs(f); magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21) {
		format = 'e'
	}
	to = strconv.AppendFloat(to, f, format, -1, 64)
	if n := len(to); format == 'e' && to[n-4] == 'e' && to[n-3] == '-' && to[n-2] == '0' {
		to = append(to[:n-2], to[n-1]) // 1e-7
	}
	return to
}

const hex = "0123456789abcdef"

func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		to = append(to, s[begin:i]...)
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c >= utf8.RuneSelf:
			to = append(to, "\ufffd"...)
		default:
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i += size
		begin = i
	}
	return append(append(to, s[begin:]...), '"')
}

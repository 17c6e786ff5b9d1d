// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// FromJSON encodes valid JSON as the store has it: shortest heads, numbers by their text. It is for
// tests, and panics on other text.
func FromJSON(text []byte) []byte {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	return encode(nil, d)
}

func head(to []byte, fixed byte, most int, c16 byte, n int) []byte {
	switch {
	case n <= most:
		return append(to, fixed|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(to, c16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(to, c16+1), uint32(n))
}

func encode(to []byte, d *json.Decoder) []byte {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch x := token.(type) {
	case bool:
		return encodeBool(to, x)
	case json.Number:
		return encodeNumber(to, string(x))
	case string:
		return encodeString(to, x)
	case json.Delim:
		var body []byte
		n := 0
		for ; d.More(); n++ {
			if x == '{' {
				body = encode(body, d)
			}
			body = encode(body, d)
		}
		_, _ = d.Token() // the closing one
		if x == '{' {
			return append(head(to, 0x80, 15, 0xde, n), body...)
		}
		return append(head(to, 0x90, 15, 0xdc, n), body...)
	}
	return append(to, 0xc0)
}

func encodeBool(to []byte, b bool) []byte {
	if b {
		return append(to, 0xc3)
	}
	return append(to, 0xc2)
}

func encodeString(to []byte, s string) []byte {
	if len(s) > 31 && len(s) < 256 {
		return append(append(to, 0xd9, byte(len(s))), s...)
	}
	return append(head(to, 0xa0, 31, 0xda, len(s)), s...)
}

func encodeNumber(to []byte, s string) []byte {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(i, 10) == s {
		switch {
		case i >= -32 && i < 128:
			return append(to, byte(i))
		case i > 0 && i < 1<<8:
			return append(to, 0xcc, byte(i))
		case i > 0 && i < 1<<16:
			return binary.BigEndian.AppendUint16(append(to, 0xcd), uint16(i))
		case i > 0 && i < 1<<32:
			return binary.BigEndian.AppendUint32(append(to, 0xce), uint32(i))
		case i > 0:
			return binary.BigEndian.AppendUint64(append(to, 0xcf), uint64(i))
		case i >= math.MinInt8:
			return append(to, 0xd0, byte(i))
		case i >= math.MinInt16:
			return binary.BigEndian.AppendUint16(append(to, 0xd1), uint16(i))
		case i >= math.MinInt32:
			return binary.BigEndian.AppendUint32(append(to, 0xd2), uint32(i))
		}
		return binary.BigEndian.AppendUint64(append(to, 0xd3), uint64(i))
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return binary.BigEndian.AppendUint64(append(to, 0xcf), u)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && string(appendFloat(nil, f)) == s {
		return binary.BigEndian.AppendUint64(append(to, 0xcb), math.Float64bits(f))
	}
	return append(append(to, 0xc7, byte(len(s)), 1), s...)
}

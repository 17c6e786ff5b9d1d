// SPDX-License-Identifier: Apache-2.0

// Package msgpack decodes the bodies of the store (FORMAT.md, Bodies) into Go values. Strings of the
// result may alias the body, which must lie in Go's memory and never change.
package msgpack

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// ErrMalformed: the bytes are no msgpack document of the store.
var ErrMalformed = errors.New("a body is no msgpack document")

const depthMost = 128

// decoder reads one document. Damage panics with ErrMalformed, which the package's functions recover.
type decoder struct {
	b       []byte
	i       int
	depth   int
	own     bool // strings that are given out do not alias b
	texts   []byte
	scratch []byte
}

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.err
	default:
		panic(r)
	}
}

// failure is the panic of a decoder.
type failure struct{ err error }

func fail(err error) { panic(failure{err}) }

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b)-d.i {
		fail(ErrMalformed)
	}
	d.i += n
	return d.b[d.i-n : d.i]
}

func (d *decoder) peek() byte {
	if d.i >= len(d.b) {
		fail(ErrMalformed)
	}
	return d.b[d.i]
}

func (d *decoder) next() byte {
	c := d.peek()
	d.i++
	return c
}

func (d *decoder) n8() int  { return int(d.next()) }
func (d *decoder) n16() int { return int(binary.BigEndian.Uint16(d.take(2))) }
func (d *decoder) n32() int { return int(binary.BigEndian.Uint32(d.take(4))) }

func (d *decoder) enter() {
	if d.depth++; d.depth > depthMost {
		fail(ErrMalformed)
	}
}

type kind byte

const (
	kindNil kind = iota
	kindBool
	kindInt
	kindUint // above an int64
	kindFloat
	kindNumber // its text
	kindString
	kindArray
	kindMap
)

func (d *decoder) kind() kind {
	c := d.peek()
	switch {
	case c < 0x80 || c >= 0xe0:
		return kindInt
	case c < 0x90 || c == 0xde || c == 0xdf:
		return kindMap
	case c < 0xa0 || c == 0xdc || c == 0xdd:
		return kindArray
	case c < 0xc0 || c >= 0xd9 && c <= 0xdb:
		return kindString
	case c == 0xc0:
		return kindNil
	case c == 0xc2 || c == 0xc3:
		return kindBool
	case c == 0xca || c == 0xcb:
		return kindFloat
	case c == 0xcf:
		if d.i+1 < len(d.b) && d.b[d.i+1] >= 0x80 {
			return kindUint
		}
		return kindInt
	case c >= 0xcc && c <= 0xd3:
		return kindInt
	case c >= 0xc7 && c <= 0xc9 || c >= 0xd4 && c <= 0xd8:
		return kindNumber
	}
	fail(ErrMalformed)
	return kindNil
}

func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (d *decoder) str() string {
	c := d.next()
	switch {
	case c&0xe0 == 0xa0:
		return alias(d.take(int(c & 0x1f)))
	case c == 0xd9:
		return alias(d.take(d.n8()))
	case c == 0xda:
		return alias(d.take(d.n16()))
	case c == 0xdb:
		return alias(d.take(d.n32()))
	}
	fail(ErrMalformed)
	return ""
}

const (
	textsSize = 1024 // of strings that share memory: who keeps one of them keeps so much
	textMost  = 256  // a longer one has its own
)

// text is a string to give out.
func (d *decoder) text() string {
	s := d.str()
	if !d.own || s == "" {
		return s
	}
	if len(s) > textMost {
		return strings.Clone(s)
	}
	n := len(d.texts)
	if len(s) > cap(d.texts)-n {
		d.texts, n = make([]byte, 0, min(textsSize, len(s)+len(d.b)-d.i)), 0
	}
	d.texts = append(d.texts, s...)
	return alias(d.texts[n:])
}

// length reads the head of a map or an array, of n elements of at least size bytes.
func (d *decoder) length(fixed, fixedMask, c16 byte, size int) int {
	c, n := d.next(), 0
	switch {
	case c&^fixedMask == fixed:
		n = int(c & fixedMask)
	case c == c16:
		n = d.n16()
	case c == c16+1:
		n = d.n32()
	default:
		fail(ErrMalformed)
	}
	if n > (len(d.b)-d.i)/size {
		fail(ErrMalformed)
	}
	return n
}

func (d *decoder) mapLength() int   { return d.length(0x80, 0x0f, 0xde, 2) }
func (d *decoder) arrayLength() int { return d.length(0x90, 0x0f, 0xdc, 1) }

func (d *decoder) integer() int64 {
	c := d.next()
	switch {
	case c < 0x80 || c >= 0xe0:
		return int64(int8(c))
	case c == 0xcc:
		return int64(d.n8())
	case c == 0xcd:
		return int64(d.n16())
	case c == 0xce:
		return int64(d.n32())
	case c == 0xcf || c == 0xd3:
		return int64(binary.BigEndian.Uint64(d.take(8)))
	case c == 0xd0:
		return int64(int8(d.next()))
	case c == 0xd1:
		return int64(int16(d.n16()))
	case c == 0xd2:
		return int64(int32(d.n32()))
	}
	fail(ErrMalformed)
	return 0
}

func (d *decoder) float() float64 {
	if d.next() == 0xca {
		return float64(math.Float32frombits(binary.BigEndian.Uint32(d.take(4))))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(d.take(8)))
}

// number reads the text of a number that is no int64, uint64 or double.
func (d *decoder) number() string {
	n := 0
	switch c := d.next(); {
	case c >= 0xd4:
		n = 1 << (c - 0xd4)
	case c == 0xc7:
		n = d.n8()
	case c == 0xc8:
		n = d.n16()
	default:
		n = d.n32()
	}
	if d.next() != 1 {
		fail(ErrMalformed)
	}
	return alias(d.take(n))
}

// numberOf converts the text of a number as the JSON decoder of Kubernetes does.
func numberOf(s string) any {
	isInteger := true
	for _, c := range []byte(s) {
		isInteger = isInteger && c != '.' && c != 'e' && c != 'E'
	}
	if isInteger {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		fail(err)
	}
	return f
}

func (d *decoder) skip() {
	switch d.kind() {
	case kindNil, kindBool:
		d.i++
	case kindInt, kindUint:
		d.integer()
	case kindFloat:
		d.float()
	case kindNumber:
		d.number()
	case kindString:
		d.str()
	case kindArray:
		d.enter()
		for n := d.arrayLength(); n > 0; n-- {
			d.skip()
		}
		d.depth--
	case kindMap:
		d.enter()
		for n := d.mapLength(); n > 0; n-- {
			d.str()
			d.skip()
		}
		d.depth--
	}
}

func (d *decoder) any() any {
	switch d.kind() {
	case kindNil:
		d.i++
		return nil
	case kindBool:
		return d.next() == 0xc3
	case kindInt:
		return d.integer()
	case kindUint:
		return float64(uint64(d.integer()))
	case kindFloat:
		if f := d.float(); f != 0 {
			return f
		}
		return int64(0) // the text was "-0", for Kubernetes an integer
	case kindNumber:
		return numberOf(d.number())
	case kindString:
		return d.text()
	case kindArray:
		d.enter()
		list := make([]any, d.arrayLength())
		for i := range list {
			list[i] = d.any()
		}
		d.depth--
		return list
	}
	return d.object()
}

func (d *decoder) object() map[string]any {
	d.enter()
	n := d.mapLength()
	m := make(map[string]any, n)
	for ; n > 0; n-- {
		key := d.text()
		m[key] = d.any()
	}
	d.depth--
	return m
}

// Map decodes a document into maps, slices and scalars: integers that fit are int64, other numbers
// float64. Its strings alias the body unless own.
func Map(body []byte, own bool) (m map[string]any, err error) {
	defer catch(&err)
	d := decoder{b: body, own: own}
	if d.kind() != kindMap {
		return nil, ErrMalformed
	}
	m = d.object()
	if d.i != len(body) {
		return nil, ErrMalformed
	}
	return m, nil
}

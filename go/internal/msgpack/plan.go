// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// A decodeFn decodes the next value into the variable at p.
type decodeFn func(d *decoder, p unsafe.Pointer)

// plan is how a struct is decoded, from its json tags.
type plan struct {
	names  []string
	fields []field
	byName map[string]int
}

type field struct {
	offset uintptr
	decode decodeFn
}

// The functions of types, made once each, with all types within them.
var (
	functions sync.Map // reflect.Type: decodeFn
	making    sync.Mutex
	made      = map[reflect.Type]*lateFn{} // by the call that makes functions now
)

// lateFn is a function that is being made: a recursive type needs it before.
type lateFn struct{ fn decodeFn }

// functionFor returns the function of a type.
func functionFor(t reflect.Type) decodeFn {
	if known, ok := functions.Load(t); ok {
		return known.(decodeFn)
	}
	making.Lock()
	defer making.Unlock()
	defer clear(made)
	fn := functionOf(t)
	for t, late := range made {
		functions.Store(t, late.fn)
	}
	return fn
}

// functionOf returns the function of a type while functions are made.
func functionOf(t reflect.Type) decodeFn {
	if known, ok := functions.Load(t); ok {
		return known.(decodeFn)
	}
	if late, ok := made[t]; ok {
		if late.fn != nil {
			return late.fn
		}
		return func(d *decoder, p unsafe.Pointer) { late.fn(d, p) }
	}
	late := &lateFn{}
	made[t] = late
	late.fn = makeFunction(t)
	return late.fn
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	stringMap       = reflect.TypeFor[map[string]string]()
)

// Decode decodes a document into a variable, as encoding/json would its JSON, but with names of fields
// compared exactly, and integers in an any as int64. Strings of the variable alias the body unless own.
func Decode(body []byte, v any, own bool) (err error) {
	defer catch(&err)
	pointer := reflect.ValueOf(v)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() {
		return fmt.Errorf("a %T is no pointer to decode into", v)
	}
	d := decoder{b: body, own: own}
	functionFor(pointer.Type().Elem())(&d, pointer.UnsafePointer())
	if d.i != len(body) {
		return ErrMalformed
	}
	return nil
}

func (d *decoder) mismatch(t reflect.Type) {
	names := [...]string{"null", "a boolean", "a number", "a number", "a number", "a number", "a string", "a list", "a map"}
	fail(fmt.Errorf("%s is no %s", names[d.kind()], t))
}

// null consumes a null.
func (d *decoder) null() bool {
	if d.peek() != 0xc0 {
		return false
	}
	d.i++
	return true
}

func makeFunction(t reflect.Type) decodeFn {
	if fn := knownFunction(t); fn != nil {
		return fn
	}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(jsonUnmarshaler) {
		return func(d *decoder, p unsafe.Pointer) {
			if err := reflect.NewAt(t, p).Interface().(json.Unmarshaler).UnmarshalJSON(d.json()); err != nil {
				fail(err)
			}
		}
	}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(textUnmarshaler) {
		return func(d *decoder, p unsafe.Pointer) {
			if d.null() {
				return
			}
			if d.kind() != kindString {
				d.mismatch(t)
			}
			if err := reflect.NewAt(t, p).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(d.str())); err != nil {
				fail(err)
			}
		}
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return scalarFunction(t)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integerFunction(t)
	case reflect.Pointer:
		return pointerFunction(t)
	case reflect.Slice:
		return sliceFunction(t)
	case reflect.Array:
		return arrayFunction(t)
	case reflect.Map:
		return mapFunction(t)
	case reflect.Struct:
		return structFunction(t)
	case reflect.Interface:
		return interfaceFunction(t)
	}
	return func(d *decoder, _ unsafe.Pointer) { d.mismatch(t) }
}

func scalarFunction(t reflect.Type) decodeFn {
	switch t.Kind() {
	case reflect.Bool:
		return func(d *decoder, p unsafe.Pointer) {
			switch c := d.next(); c {
			case 0xc2, 0xc3:
				*(*bool)(p) = c == 0xc3
			case 0xc0:
			default:
				d.i--
				d.mismatch(t)
			}
		}
	case reflect.String:
		return func(d *decoder, p unsafe.Pointer) {
			if d.kind() == kindString {
				*(*string)(p) = d.text()
			} else if !d.null() {
				d.mismatch(t)
			}
		}
	}
	return func(d *decoder, p unsafe.Pointer) {
		if d.null() {
			return
		}
		f := d.floatOf(t)
		if t.Kind() == reflect.Float32 {
			*(*float32)(p) = float32(f)
		} else {
			*(*float64)(p) = f
		}
	}
}

// floatOf reads a number of any kind.
func (d *decoder) floatOf(t reflect.Type) float64 {
	switch d.kind() {
	case kindInt:
		return float64(d.integer())
	case kindUint:
		return float64(uint64(d.integer()))
	case kindFloat:
		return d.float()
	case kindNumber:
		f, err := strconv.ParseFloat(d.number(), t.Bits())
		if err != nil {
			fail(err)
		}
		return f
	}
	d.mismatch(t)
	return 0
}

func integerFunction(t reflect.Type) decodeFn {
	signed := t.Kind() <= reflect.Int64
	return func(d *decoder, p unsafe.Pointer) {
		var i int64
		v := reflect.NewAt(t, p).Elem()
		switch d.kind() {
		case kindNil:
			d.i++
			return
		case kindInt:
			i = d.integer()
		case kindUint:
			if u := uint64(d.integer()); !signed && !v.OverflowUint(u) {
				v.SetUint(u)
				return
			}
			fail(fmt.Errorf("a number overflows %s", t))
		case kindFloat: // only of "-0" an integer
			if d.float() != 0 {
				fail(fmt.Errorf("a number is no %s", t))
			}
		default:
			d.mismatch(t)
		}
		switch {
		case signed && !v.OverflowInt(i):
			v.SetInt(i)
		case !signed && i >= 0 && !v.OverflowUint(uint64(i)):
			v.SetUint(uint64(i))
		default:
			fail(fmt.Errorf("%d overflows %s", i, t))
		}
	}
}

func pointerFunction(t reflect.Type) decodeFn {
	element := t.Elem()
	fn := functionOf(element)
	return func(d *decoder, p unsafe.Pointer) {
		if d.null() {
			*(*unsafe.Pointer)(p) = nil
			return
		}
		to := *(*unsafe.Pointer)(p)
		if to == nil {
			to = reflect.New(element).UnsafePointer()
			*(*unsafe.Pointer)(p) = to
		}
		fn(d, to)
	}
}

// sliceHeader is a slice of any type.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

const arraysMost = 4 // longer ones cost a header on the heap

func makeArray(t reflect.Type, arrays *[arraysMost + 1]reflect.Type, n int) unsafe.Pointer {
	if n <= arraysMost {
		return reflect.New(arrays[n]).UnsafePointer()
	}
	return reflect.MakeSlice(t, n, n).UnsafePointer()
}

func sliceFunction(t reflect.Type) decodeFn {
	element := t.Elem()
	if element.Kind() == reflect.Uint8 && !reflect.PointerTo(element).Implements(jsonUnmarshaler) &&
		!reflect.PointerTo(element).Implements(textUnmarshaler) {
		return func(d *decoder, p unsafe.Pointer) {
			if d.null() {
				*(*[]byte)(p) = nil
				return
			}
			if d.kind() != kindString {
				d.mismatch(t)
			}
			bytes, err := base64.StdEncoding.DecodeString(d.str())
			if err != nil {
				fail(err)
			}
			*(*[]byte)(p) = bytes
		}
	}
	fn, size := functionOf(element), element.Size()
	var arrays [arraysMost + 1]reflect.Type
	for n := range arrays {
		arrays[n] = reflect.ArrayOf(n, element)
	}
	return func(d *decoder, p unsafe.Pointer) {
		if d.null() {
			*(*sliceHeader)(p) = sliceHeader{}
			return
		}
		if d.kind() != kindArray {
			d.mismatch(t)
		}
		d.enter()
		n := d.arrayLength()
		made := sliceHeader{makeArray(t, &arrays, n), n, n}
		*(*sliceHeader)(p) = made
		for i := range n {
			fn(d, unsafe.Add(made.data, uintptr(i)*size))
		}
		d.depth--
	}
}

func arrayFunction(t reflect.Type) decodeFn {
	fn, size := functionOf(t.Elem()), t.Elem().Size()
	return func(d *decoder, p unsafe.Pointer) {
		if d.null() {
			return
		}
		if d.kind() != kindArray {
			d.mismatch(t)
		}
		d.enter()
		n := d.arrayLength()
		for i := range n {
			if i < t.Len() {
				fn(d, unsafe.Add(p, uintptr(i)*size))
			} else {
				d.skip()
			}
		}
		for i := n; i < t.Len(); i++ {
			reflect.NewAt(t.Elem(), unsafe.Add(p, uintptr(i)*size)).Elem().SetZero()
		}
		d.depth--
	}
}

func mapFunction(t reflect.Type) decodeFn {
	if t == stringMap {
		return func(d *decoder, p unsafe.Pointer) { d.stringMap((*map[string]string)(p)) }
	}
	key := keyFunction(t.Key())
	fn := functionOf(t.Elem())
	return func(d *decoder, p unsafe.Pointer) {
		m := reflect.NewAt(t, p).Elem()
		if d.null() {
			m.SetZero()
			return
		}
		if d.kind() != kindMap {
			d.mismatch(t)
		}
		d.enter()
		n := d.mapLength()
		if m.IsNil() {
			m.Set(reflect.MakeMapWithSize(t, n))
		}
		k, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem())
		for ; n > 0; n-- {
			key(k, d.text())
			value.Elem().SetZero() // of the entry before
			fn(d, value.UnsafePointer())
			m.SetMapIndex(k, value.Elem())
		}
		d.depth--
	}
}

func (d *decoder) stringMap(to *map[string]string) {
	if d.null() {
		*to = nil
		return
	}
	if d.kind() != kindMap {
		d.mismatch(stringMap)
	}
	n := d.mapLength()
	if *to == nil {
		*to = make(map[string]string, n)
	}
	for ; n > 0; n-- {
		key := d.text()
		value := ""
		if d.kind() == kindString {
			value = d.text()
		} else if !d.null() {
			d.mismatch(reflect.TypeFor[string]())
		}
		(*to)[key] = value
	}
}

// keyFunction converts the keys of a map.
func keyFunction(t reflect.Type) func(v reflect.Value, s string) {
	isText := reflect.PointerTo(t).Implements(textUnmarshaler)
	return func(v reflect.Value, s string) {
		var err error
		switch {
		case isText:
			err = v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
		case t.Kind() == reflect.String:
			v.SetString(s)
		case v.CanInt():
			var i int64
			i, err = strconv.ParseInt(s, 10, t.Bits())
			v.SetInt(i)
		case v.CanUint():
			var u uint64
			u, err = strconv.ParseUint(s, 10, t.Bits())
			v.SetUint(u)
		default:
			err = fmt.Errorf("%s can't be the key of a map", t)
		}
		if err != nil {
			fail(err)
		}
	}
}

func interfaceFunction(t reflect.Type) decodeFn {
	if t.NumMethod() == 0 {
		return func(d *decoder, p unsafe.Pointer) { *(*any)(p) = d.any() }
	}
	return func(d *decoder, p unsafe.Pointer) {
		if !d.null() {
			d.mismatch(t)
		}
		reflect.NewAt(t, p).Elem().SetZero()
	}
}

// ---- structs ------------------------------------------------------------------

// found is a candidate for a member's name.
type found struct {
	name   string
	depth  int
	tagged bool
	field
}

// collector finds the fields of a struct, and of those embedded in it.
type collector struct {
	all   []found
	chain []reflect.Type // embedded one in the other
}

// collect finds those of a struct at an offset. Within leads to what it is in.
func (c *collector) collect(t reflect.Type, base uintptr, within func(field) field) {
	c.chain = append(c.chain, t)
	defer func() { c.chain = c.chain[:len(c.chain)-1] }()
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			if f.Type.Kind() == reflect.Struct {
				c.collect(f.Type, base+f.Offset, within)
				continue
			}
			if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
				if !slices.Contains(c.chain, f.Type.Elem()) {
					c.collect(f.Type.Elem(), 0, func(inner field) field { return within(behind(f, base+f.Offset, inner)) })
				}
				continue
			}
		}
		if !f.IsExported() {
			continue
		}
		tagged := name != ""
		if !tagged {
			name = f.Name
		}
		decode := functionOf(f.Type)
		if slices.Contains(strings.Split(options, ","), "string") && isScalar(f.Type) {
			decode = quotedFunction(f.Type)
		}
		c.all = append(c.all, found{name, len(c.chain), tagged, within(field{base + f.Offset, decode})})
	}
}

// behind is a field behind an embedded pointer, which is set when the field is there.
func behind(pointer reflect.StructField, offset uintptr, inner field) field {
	t := pointer.Type.Elem()
	return field{offset, func(d *decoder, p unsafe.Pointer) {
		to := (*unsafe.Pointer)(p)
		if *to == nil {
			if !pointer.IsExported() {
				fail(fmt.Errorf("an embedded pointer to the unexported %s can't be set", t))
			}
			*to = reflect.New(t).UnsafePointer()
		}
		inner.decode(d, unsafe.Add(*to, inner.offset))
	}}
}

// isScalar tells whether the option "string" of a tag means something for a type.
func isScalar(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64 || t.Kind() == reflect.String
}

// quotedFunction decodes a value that is JSON in a string.
func quotedFunction(t reflect.Type) decodeFn {
	return func(d *decoder, p unsafe.Pointer) {
		if d.null() {
			return
		}
		if d.kind() != kindString {
			d.mismatch(t)
		}
		if err := json.Unmarshal([]byte(d.str()), reflect.NewAt(t, p).Interface()); err != nil {
			fail(err)
		}
	}
}

// choose keeps one field for each name: of those least embedded the tagged one. Two of a kind hide
// each other.
func choose(all []found) *plan {
	p := &plan{byName: map[string]int{}}
	for i, f := range all {
		better, same := 0, 0
		for k, g := range all {
			if g.name != f.name || k == i {
				continue
			}
			if g.depth < f.depth || g.depth == f.depth && g.tagged && !f.tagged {
				better++
			} else if g.depth == f.depth && g.tagged == f.tagged {
				same++
			}
		}
		if better+same == 0 {
			p.byName[f.name] = len(p.fields)
			p.names = append(p.names, f.name)
			p.fields = append(p.fields, f.field)
		}
	}
	return p
}

const aheadMost = 12 // members that an object often lacks one behind the other

// find returns the number of a field. Members come in the order of the fields, with some left out.
func (p *plan) find(name string, likely int) (int, bool) {
	for i := likely; i < len(p.names) && i < likely+aheadMost; i++ {
		if p.names[i] == name {
			return i, true
		}
	}
	i, ok := p.byName[name]
	return i, ok
}

func structFunction(t reflect.Type) decodeFn {
	var c collector
	c.collect(t, 0, func(f field) field { return f })
	plan := choose(c.all)
	return func(d *decoder, p unsafe.Pointer) {
		if d.kind() != kindMap {
			if !d.null() {
				d.mismatch(t)
			}
			return
		}
		d.enter()
		likely := 0 // the field after the last one
		for n := d.mapLength(); n > 0; n-- {
			i, ok := plan.find(d.str(), likely)
			if !ok {
				d.skip()
				continue
			}
			likely = i + 1
			plan.fields[i].decode(d, unsafe.Add(p, plan.fields[i].offset))
		}
		d.depth--
	}
}

// ---- types of Kubernetes --------------------------------------------------------

// knownFunction returns the function of some types of apimachinery, which this module does not import.
// Their own UnmarshalJSON does the same, slower. nil: the type, or its shape, is another one.
func knownFunction(t reflect.Type) decodeFn {
	switch t.PkgPath() + "." + t.Name() {
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Time":
		if t.NumField() == 1 && t.Field(0).Type == reflect.TypeFor[time.Time]() {
			return func(d *decoder, p unsafe.Pointer) { d.time((*time.Time)(p), time.RFC3339) }
		}
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString":
		kind, hasKind := t.FieldByName("Type")
		number, hasNumber := t.FieldByName("IntVal")
		text, hasText := t.FieldByName("StrVal")
		if hasKind && hasNumber && hasText && kind.Type.Kind() == reflect.Int64 && number.Type.Kind() == reflect.Int32 &&
			text.Type.Kind() == reflect.String {
			integer := functionOf(number.Type)
			return func(d *decoder, p unsafe.Pointer) {
				if d.kind() == kindString {
					*(*int64)(unsafe.Add(p, kind.Offset)) = 1
					*(*string)(unsafe.Add(p, text.Offset)) = d.text()
					return
				}
				*(*int64)(unsafe.Add(p, kind.Offset)) = 0
				integer(d, unsafe.Add(p, number.Offset))
			}
		}
	case "k8s.io/apimachinery/pkg/api/resource.Quantity":
		if reflect.PointerTo(t).Implements(jsonUnmarshaler) {
			return func(d *decoder, p unsafe.Pointer) { d.quantity(reflect.NewAt(t, p).Interface().(json.Unmarshaler)) }
		}
	}
	return nil
}

// time reads a time as metav1.Time does.
func (d *decoder) time(to *time.Time, layout string) {
	if d.null() {
		*to = time.Time{}
		return
	}
	if d.kind() != kindString {
		d.mismatch(reflect.TypeFor[time.Time]())
	}
	t, err := time.Parse(layout, d.str())
	if err != nil {
		fail(err)
	}
	*to = t.Local()
}

// quantity gives a Quantity its text in quotes, without the escapes that none has.
func (d *decoder) quantity(to json.Unmarshaler) {
	var text []byte
	if d.kind() == kindString {
		d.scratch = append(append(append(d.scratch[:0], '"'), d.str()...), '"')
		text = d.scratch
	} else {
		text = d.json()
	}
	if err := to.UnmarshalJSON(text); err != nil {
		fail(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func body(_ testing.TB, text string) []byte { return FromJSON([]byte(text)) }

type embedded struct {
	Shared string `json:"shared,omitempty"`
	Hidden int32  `json:"hidden"`
}

type inner struct {
	Name  string           `json:"name"`
	Count *int32           `json:"count"`
	Self  []inner          `json:"self"`
	More  map[string]inner `json:"more"`
	Any   any              `json:"any"`
}

type stringly struct {
	Number int `json:"number,string"`
}

type outer struct {
	embedded `json:",inline"`
	Inner    inner             `json:"inner"`
	Pointer  *inner            `json:"pointer"`
	Hidden   string            `json:"hidden"`
	Labels   map[string]string `json:"labels"`
	Numbers  map[int16]float64 `json:"numbers"`
	Bytes    []byte            `json:"bytes"`
	Time     time.Time         `json:"time"`
	Address  netip.Addr        `json:"address"`
	Raw      json.RawMessage   `json:"raw"`
	Wide     uint64            `json:"wide"`
	Narrow   int8              `json:"narrow"`
	Float    float32           `json:"float"`
	Pair     [2]bool           `json:"pair"`
	Strings  []string          `json:"strings"`
	Stringly stringly          `json:"stringly"`
	Untagged string
	skipped  string                 //lint:ignore U1000 it is not exported: nothing may be written there
	Ignored  string                 `json:"-"`
	Nested   map[string][]*embedded `json:"nested"`
}

var documents = []string{
	`{}`,
	`{"shared":"a","hidden":"b","inner":{"name":"x","count":3,"self":[{"name":"y","count":null}],"more":{"k":{"name":"z"}}}}`,
	`{"pointer":{"any":{"a":[1,2.5,"x",null,true,{"b":1e300}]}},"labels":{"a":"b","c":""},"numbers":{"1":1,"-2":2.5,"3":1e5}}`,
	`{"bytes":"aGVsbG8=","time":"2026-11-27T10:00:00.5Z","address":"10.0.0.1","raw":{"z":1,"a":[true,"ü\u0001\"\\"]}}`,
	`{"wide":18446744073709551615,"narrow":-128,"float":1.5,"pair":[true],"strings":["a",null,"c"],"stringly":{"number":"7"}}`,
	`{"Untagged":"u","skipped":"s","Ignored":"i","-":"x","unknown":{"deep":[[[{}]]]},"nested":{"a":[null,{"shared":"s"}]}}`,
	`{"inner":null,"pointer":null,"labels":null,"bytes":null,"strings":null,"wide":null,"pair":null,"nested":null}`,
	`{"labels":{"` + strings.Repeat("k", 300) + `":"` + strings.Repeat("v", 40) + `"},"strings":[` + strings.Repeat(`"s",`, 40) + `"t"]}`,
}

func TestTypedIsAsByJSON(t *testing.T) {
	for _, text := range documents {
		var want, got outer
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := Decode(body(t, text), &got, false); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		// RawMessage keeps the text; integers in an any are int64 here.
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if !bytes.Equal(a, b) {
			t.Errorf("%s:\n%s\n%s", text, b, a)
		}
		want.Pointer, got.Pointer = nil, nil
		if want.Raw, got.Raw = nil, nil; !reflect.DeepEqual(want, got) {
			t.Errorf("%s:\n%+v\n%+v", text, got, want)
		}
	}
}

type Base struct {
	Shared string         `json:"shared,omitempty"`
	Any    map[string]any `json:"any,omitempty"`
}

type Upper struct {
	*Base  `json:",inline"`
	Middle string `json:"middle"`
	Port   *int64 `json:"port,omitempty,string"`
	Text   string `json:"text,string"`
}

type pointing struct {
	*Upper    `json:",inline"`
	*pointing        //lint:ignore U1000 a type that holds itself
	Shared    string `json:"-"`
	Own       bool   `json:"own,string"`
}

// Embedded pointers, and values in strings: as by the JSON decoder of apimachinery, which compares names
// exactly and keeps integers.
func TestEmbeddedPointers(t *testing.T) {
	for _, text := range []string{`{}`, `{"own":"true"}`, `{"middle":"m"}`, `{"shared":"s","port":"7","own":null}`, `{"shared":null}`,
		`{"text":"\"quoted\"","port":"9007199254740993"}`} {
		var want, got pointing
		if err := errors.Join(json.Unmarshal([]byte(text), &want), Decode(body(t, text), &got, false)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %+v, not %+v", text, got, want)
		}
	}
	var got pointing
	err := Decode(body(t, `{"Middle":"other case","any":{"n":9007199254740993}}`), &got, false)
	if err != nil || got.Middle != "" || got.Any["n"] != int64(9007199254740993) {
		t.Errorf("%+v %v", got.Upper, err)
	}
	for _, text := range []string{`{"own":true}`, `{"port":"x"}`, `{"text":"bare"}`} {
		if json.Unmarshal([]byte(text), &pointing{}) == nil || Decode(body(t, text), &pointing{}, false) == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// What does not alias its body stays as it is when the body's memory is used for something else.
func TestOwnMemory(t *testing.T) {
	labels := map[string]string{} // more than one block, and more than is put into one
	for n := range 300 {
		labels[fmt.Sprint(n)] = strings.Repeat("x", n)
	}
	long, _ := json.Marshal(map[string]any{"labels": labels})
	for _, text := range append(slices.Clone(documents), string(long)) {
		var aliases, own outer
		b := body(t, text)
		if err := errors.Join(Decode(bytes.Clone(b), &aliases, false), Decode(b, &own, true)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again := body(t, text)
		m, err := Map(again, true)
		want, wantErr := Map(body(t, text), false)
		if err = errors.Join(err, wantErr); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		clear(b)
		clear(again)
		if !reflect.DeepEqual(own, aliases) || !reflect.DeepEqual(m, want) {
			t.Errorf("%s:\n%+v\n%+v\n%v", text, own, aliases, m)
		}
	}
}

func TestMismatchesAreErrors(t *testing.T) {
	for _, text := range []string{`{"inner":1}`, `{"labels":{"a":1}}`, `{"narrow":128}`, `{"wide":-1}`, `{"narrow":1.5}`,
		`{"bytes":"%"}`, `{"time":"yesterday"}`, `{"strings":"a"}`, `{"numbers":{"x":1}}`, `{"pair":{}}`, `{"hidden":[]}`, `[]`} {
		var want, got outer
		if json.Unmarshal([]byte(text), &want) == nil {
			t.Fatalf("%s is no mismatch", text)
		}
		if err := Decode(body(t, text), &got, false); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	var m map[string]string
	if Decode(body(t, `{}`), m, false) == nil || Decode(body(t, `{}`), nil, false) == nil {
		t.Error("no pointer, and no error")
	}
}

func TestNumbersOfMaps(t *testing.T) {
	for text, want := range map[string]any{"1": int64(1), "-0": int64(0), "-0.0": math.Copysign(0, -1), "1.0": 1.0, "1E5": 1e5,
		"9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64),
		"18446744073709551615": 18446744073709551615.0, "12345678901234567890123": 12345678901234567890123.0,
		"100000000000000000000": 1e20, "0.1": 0.1, "-33": int64(-33), "200": int64(200), "70000": int64(70000)} {
		m, err := Map(body(t, `{"n":`+text+`}`), false)
		if err != nil || !reflect.DeepEqual(m["n"], want) {
			t.Errorf("%s: %T %v, %v", text, m["n"], m["n"], err)
		}
		spelt, err := JSON(body(t, `{"n":`+text+`}`))
		if err != nil || string(spelt) != `{"n":`+text+`}` {
			t.Errorf("%s: %s %v", text, spelt, err)
		}
	}
}

// Whatever the bytes are, there is an error or a value, and no crash.
func TestAnyBytes(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, text := range documents {
		whole := body(t, text)
		for range 2000 {
			b := bytes.Clone(whole)
			for range 1 + random.Intn(3) {
				b[random.Intn(len(b))] ^= 1 << random.Intn(8)
			}
			b = b[:len(b)-random.Intn(2)*random.Intn(len(b))]
			var o outer
			_ = Decode(b, &o, false)
			_, _ = Map(b, false)
			_, _ = JSON(b)
		}
	}
	if _, err := Map(bytes.Repeat([]byte{0x91}, 1000), false); err == nil {
		t.Error("a thousand levels")
	}
}

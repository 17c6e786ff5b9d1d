// SPDX-License-Identifier: Apache-2.0

package path

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"kinf/internal/msgpack"
)

func texts(t *testing.T, path string, body []byte) (found []string, err error) {
	t.Helper()
	p, err := Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(p.String())
	if err != nil || again.String() != p.String() {
		t.Errorf("%s: the canonical text %s is parsed as %v %v", path, p, again, err)
	}
	err = msgpack.Walk(body, func(v msgpack.Value) {
		p.Texts(v, func(text string, _ bool) bool {
			found = append(found, text)
			return true
		})
	})
	return found, err
}

func TestPathsFindValues(t *testing.T) {
	body := msgpack.FromJSON([]byte(`{"a":{"b":[{"n":1,"t":"x"},{"n":2.5,"t":"y"},{"n":true,"t":null}],"c.d":"dots","$":"money"},
		"deep":[[{"n":"in"}]]}`))
	for path, want := range map[string][]string{
		"a.b[*].n": {"1", "2.5", "true"}, "$.a.b[0].t": {"x"}, "{ .a.b[-1].n }": {"true"}, "a.b[5].n": nil, "a.b.n": nil,
		"a.b[0:2].t": {"x", "y"}, "a.b[::2].n": {"1", "true"}, "a.b[-2:].n": {"2.5", "true"}, "a['c.d']": {"dots"},
		"a.c\\.d": {"dots"}, "a['$']": {"money"}, "a.b[t=y].n": {"2.5"}, "a.b[?(@.n>1)].t": {"y"}, "a.b[?(@.n==true)].n": {"true"},
		"a.b[?(@.t)].n": {"1", "2.5", "true"}, "..n": {"1", "2.5", "true", "in"}, "..": {"x", "y", "dots", "money", "in"},
		"a.b[0]['n','t']": {"1", "x"}, "a['b[0].n','c.d']": {"1", "dots"}, "a.b[?(@.n!=\"1\")].n": {"2.5", "true"},
		"a.*[1].t": {"y"}, "a.b[*].t": {"x", "y", ""},
	} {
		if found, err := texts(t, path, body); err != nil || !slices.Equal(found, want) {
			t.Errorf("%s: %q %v, not %q", path, found, err, want)
		}
	}
}

// A document that is too deep, cut, or of other bytes is malformed, whatever the path.
func TestDamagedDocuments(t *testing.T) {
	deep := bytes.Repeat([]byte{0x91}, 1<<20)
	for _, body := range [][]byte{deep, append(deep, 0xc0), nil, {0x81}, {0x81, 0xa1}, {0xc1}, {0x81, 0xa1, 'a', 0xda}} {
		if found, err := texts(t, "..a[*]", body); !errors.Is(err, msgpack.ErrMalformed) {
			t.Errorf("%.9x: %q %v", body, found, err)
		}
	}
}

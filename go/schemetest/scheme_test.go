// SPDX-License-Identifier: Apache-2.0

// Package schemetest checks the decoder on every type of client-go's scheme, and measures it beside
// what a cached read of client-go costs. It is a module of its own: kinf needs the standard library
// alone.
package schemetest

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	sjson "sigs.k8s.io/json"

	"kinf/internal/msgpack"
)

// A type decodes as its JSON does: typed, and as a map.
func TestEveryTypeOfTheScheme(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme.Scheme))
	types, objects := 0, 0
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		types++
		for range 20 {
			object := reflect.New(of).Interface()
			fill.Fill(object)
			text, err := json.Marshal(object)
			if err != nil {
				continue // the fuzzer made what has no JSON
			}
			objects++
			body := msgpack.FromJSON(text)
			want, got := reflect.New(of).Interface(), reflect.New(of).Interface()
			wanted := sjson.UnmarshalCaseSensitivePreserveInts(text, want)
			err = msgpack.Decode(body, got, false)
			if (err == nil) != (wanted == nil) {
				t.Fatalf("%s: %v, not %v\n%s", kind, err, wanted, text)
			}
			if err == nil && !equality.Semantic.DeepEqual(got, want) {
				// Raw JSON inside may be spelt in another way.
				a, _ := json.Marshal(got)
				if b, _ := json.Marshal(want); !bytes.Equal(a, b) {
					t.Fatalf("%s:\n%s\n%s", kind, a, b)
				}
			}
			again, apart := bytes.Clone(body), reflect.New(of).Interface()
			if failed := msgpack.Decode(again, apart, true) != nil; failed != (err != nil) {
				t.Fatalf("%s: in its own memory: %v", kind, failed)
			}
			clear(again)
			if err == nil && !reflect.DeepEqual(apart, got) {
				t.Fatalf("%s: in its own memory: %v\n%v", kind, apart, got)
			}
			var tree map[string]any
			if err := sjson.UnmarshalCaseSensitivePreserveInts(text, &tree); err != nil {
				t.Fatal(err)
			}
			if m, err := msgpack.Map(body, false); err != nil || !reflect.DeepEqual(m, tree) {
				t.Fatalf("%s: %v\n%v\n%v", kind, err, m, tree)
			}
		}
	}
	t.Logf("%d types, %d objects", types, objects)
}

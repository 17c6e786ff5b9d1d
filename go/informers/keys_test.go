// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kinf"
)

// Keys of a few lengths that share beginnings, in any order, against a map.
func TestKeySet(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var keys keySet
		want := map[string]position{}
		most := 1 << random.IntN(14)
		for step := range 3000 {
			n := random.IntN(most)
			key := fmt.Sprintf("ns-%d/%.*s-%d", n%7, n%40, "web-75d9f6c8b4-abcdefghijklmnopqrstuvwxyz", n)
			at := position{random.IntN(3), random.Uint64() >> random.IntN(64)}
			before, known := want[key]
			var was position
			var found bool
			if random.IntN(3) == 0 {
				was, found = keys.remove(key)
				delete(want, key)
			} else {
				was, found = keys.put(key, at)
				want[key] = at
			}
			if was != before || found != known {
				t.Fatalf("seed %d, step %d: %s was %v %v, not %v %v", seed, step, key, was, found, before, known)
			}
		}
		for n := range most {
			key := fmt.Sprintf("ns-%d/%.*s-%d", n%7, n%40, "web-75d9f6c8b4-abcdefghijklmnopqrstuvwxyz", n)
			at, found := keys.get(key)
			if before, known := want[key]; at != before || found != known {
				t.Fatalf("seed %d: %s is at %v %v, not %v %v", seed, key, at, found, before, known)
			}
		}
		var order []string
		for key, at := range keys.all() {
			if at != want[key] {
				t.Fatalf("seed %d: %s is at %v, not %v", seed, key, at, want[key])
			}
			order = append(order, key)
		}
		if wanted := slices.Sorted(maps.Keys(want)); !slices.Equal(order, wanted) {
			t.Fatalf("seed %d: %d keys, not the %d in order", seed, len(order), len(wanted))
		}
		for n := range keys.blocks {
			if size := len(keys.blocks[n].entries); size == 0 || size > 3*keyBlockSize {
				t.Fatalf("seed %d: a block of %d bytes", seed, size)
			}
		}
	}
}

// A pod created while all objects come again is not missing at the end; one that did not come is.
func TestChangeWhileAllComeAgain(t *testing.T) {
	event := func(kind kinf.EventType, key string, number uint64) *kinf.Event {
		return &kinf.Event{Type: kind, Number: number, Object: &kinf.Object{Key: key, Event: number}}
	}
	var s source
	s.known.put("a/gone", position{0, 1})
	s.known.put("a/kept", position{0, 2})
	s.again = &keySet{}
	first := event(kinf.Added, "a/kept", 2)
	first.Initial = true
	s.changed(first, position{0, 4})
	if changes := s.changed(event(kinf.Added, "a/born", 5), position{0, 5}); len(changes) != 1 || changes[0].known {
		t.Errorf("a/born: %+v", changes)
	}
	if changes := s.missed(position{0, 6}); len(changes) != 1 || changes[0].key != "a/gone" || !changes[0].missed {
		t.Errorf("missed: %+v", changes)
	}
	if _, known := s.known.get("a/born"); !known {
		t.Error("a/born is not known")
	}
}

// SPDX-License-Identifier: Apache-2.0

package kinf_test

import (
	"slices"
	"testing"

	"kinf"
)

func TestChanged(t *testing.T) {
	w := synced(t, 20)
	store := openStore(t, w.Store)
	newest := func(key string) (s *kinf.Snapshot, f *kinf.Feed) {
		w.Eventually(key, func() bool {
			if s != nil {
				s.Close()
			}
			var err error
			if s, err = store.Snapshot(); err != nil {
				t.Fatal(err)
			}
			feeds, err := s.Feeds("pods")
			if err != nil {
				t.Fatal(err)
			}
			f = &feeds[0]
			_, shown := f.Change()
			_, err = s.Get("pods", key)
			return shown && err == nil
		})
		t.Cleanup(s.Close)
		return s, f
	}
	w.Put("pods", pod("a", "1"))
	_, f := newest("web/a")
	before, _ := f.Change()
	w.Put("pods", pod("b", "1"))
	w.Put("pods", pod("a", "2"))
	w.Put("pods", pod("a", "3"))
	w.Delete("pods", "web/b")
	w.Put("pods", pod("c", "1"))
	s, f := newest("web/c")
	last, _ := f.Change()
	for _, c := range []struct {
		after uint64
		most  int
		known bool
		want  []string
	}{
		{before, 100, true, []string{"web/a", "web/b", "web/c"}}, {last - 1, 1, true, []string{"web/c"}}, {last, 0, true, nil},
		{before, 4, false, nil}, {last + 1, 100, false, nil},
	} {
		keys, known, err := s.Changed(f, c.after, c.most)
		if err != nil || known != c.known || !slices.Equal(keys, c.want) {
			t.Errorf("after %d of %d, at most %d: %v %v %v", c.after, last, c.most, keys, known, err)
		}
	}
	w.Configure("- resource: pods\nretention: {time: 1s}\n")
	w.Eventually("the history is trimmed", func() bool {
		w.Put("pods", pod("d", "1"))
		s, f := newest("web/d")
		keys, known, err := s.Changed(f, before, 10000)
		if err != nil || known && !slices.Contains(keys, "web/a") {
			t.Fatal(keys, known, err)
		}
		return !known
	})
}

// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"encoding/binary"
	"iter"
	"slices"
	"sort"
)

// keySet has keys, each with the position of its newest version. The zero value is empty.
//
// Keys are kept in order, without the beginning that each shares with the one before: a pod's takes
// some 20 bytes. A map takes ten times that, and as much again for the collector's room.
type keySet struct {
	blocks []keyBlock
}

// keyBlock has the entries of the keys from first up to the next block's. An entry is the length of the
// shared beginning, that of the rest, the rest, epoch and event; numbers are varints.
type keyBlock struct {
	first   string
	entries []byte
}

const keyBlockSize = 1024 // bytes; a block that has grown to twice that is split

// keyWriter writes blocks of keys that come in order.
type keyWriter struct {
	keySet
	size int    // of a block that is full
	last []byte // the key before
}

func (w *keyWriter) add(key []byte, at position) {
	n := len(w.blocks) - 1
	if n < 0 || len(w.blocks[n].entries) >= w.size {
		w.blocks = append(w.blocks, keyBlock{string(key), make([]byte, 0, keyBlockSize+len(key))})
		w.last = w.last[:0]
		n++
	}
	shared := 0
	for shared < min(len(key), len(w.last)) && key[shared] == w.last[shared] {
		shared++
	}
	entries := binary.AppendUvarint(w.blocks[n].entries, uint64(shared))
	entries = binary.AppendUvarint(entries, uint64(len(key)-shared))
	entries = append(entries, key[shared:]...)
	entries = binary.AppendUvarint(entries, uint64(at.epoch))
	w.blocks[n].entries = binary.AppendUvarint(entries, at.event)
	w.last = append(w.last[:shared], key[shared:]...)
}

// all gives the keys in order. One may be kept until the next is given.
func (b *keyBlock) all() iter.Seq2[[]byte, position] {
	return func(yield func([]byte, position) bool) {
		var key []byte
		rest := b.entries
		number := func() uint64 {
			n, length := binary.Uvarint(rest)
			rest = rest[length:]
			return n
		}
		for len(rest) > 0 {
			key = key[:number()]
			length := number()
			key = append(key, rest[:length]...)
			rest = rest[length:]
			if !yield(key, position{int(number()), number()}) {
				return
			}
		}
	}
}

// all gives the keys in order. The set must not change meanwhile.
func (k *keySet) all() iter.Seq2[string, position] {
	return func(yield func(string, position) bool) {
		for n := range k.blocks {
			for key, at := range k.blocks[n].all() {
				if !yield(string(key), at) {
					return
				}
			}
		}
	}
}

// place returns the number of the block that a key belongs to.
func (k *keySet) place(key string) int {
	return max(0, sort.Search(len(k.blocks), func(n int) bool { return k.blocks[n].first > key })-1)
}

func (k *keySet) get(key string) (at position, found bool) {
	if len(k.blocks) == 0 {
		return at, false
	}
	for one, at := range k.blocks[k.place(key)].all() {
		if string(one) == key {
			return at, true
		}
	}
	return at, false
}

// put sets the position of a key, and returns the one before.
func (k *keySet) put(key string, at position) (before position, found bool) {
	return k.change(key, &at)
}

// remove returns the position that the key had.
func (k *keySet) remove(key string) (before position, found bool) { return k.change(key, nil) }

// change writes the block of a key again.
func (k *keySet) change(key string, at *position) (before position, found bool) {
	var old keyBlock
	n, end := k.place(key), len(k.blocks)
	if end > 0 {
		old, end = k.blocks[n], n+1
	}
	w := keyWriter{size: 2*keyBlockSize + 1}
	if len(old.entries) >= 2*keyBlockSize {
		w.size = keyBlockSize
	}
	put := func() {
		if at != nil {
			w.add([]byte(key), *at)
			at = nil
		}
	}
	for one, was := range old.all() {
		if string(one) >= key {
			put()
		}
		if string(one) == key {
			before, found = was, true
			continue
		}
		w.add(one, was)
	}
	put()
	k.blocks = slices.Replace(k.blocks, n, end, w.blocks...)
	return before, found
}

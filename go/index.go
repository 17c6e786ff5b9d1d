// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"bytes"
	"cmp"
	"slices"

	"kinf/internal/env"
)

// Databases of the index, as numbers in indexDatabases.
const (
	dbName = iota
	dbObject
	dbTerm
	dbPosting
	dbIndexMeta
)

var indexDatabases = []string{"name", "object", "term", "posting", "meta"}

// indexRow checks the checksum of a row of the index, and returns its value without it.
func indexRow(key, value []byte) ([]byte, error) {
	n := len(value) - 4
	if n < 0 || crc(key, value[:n]) != le.Uint32(value[n:]) {
		return nil, say(ErrCorrupt, "index: the checksum of a row is wrong: %s", remedy)
	}
	return value[:n], nil
}

func badRow(database string) error {
	return say(ErrCorrupt, "index: a row of '%s' is damaged: %s", database, remedy)
}

// checkAround checks the rows on both sides of a key that is missing, or where a walk begins: a damaged
// key, in a row or on the way to it, hides rows. The cursor is at the first row not below wanted, if
// there is one (found), and stays there.
func checkAround(cursor *env.Cursor, txn *env.Txn, database int, wanted []byte, found bool) error {
	name := indexDatabases[database]
	at := *cursor
	if !found {
		last, err := at.Last(txn, database)
		if err != nil || !last {
			return err // an empty tree has no rows to hide
		}
	}
	for side := range 2 {
		if _, err := indexRow(at.Key(), at.Value()); err != nil {
			return err
		}
		order := bytes.Compare(at.Key(), wanted)
		if !at.LeafIsWhole() || (side == 0 && found) != (order >= 0) {
			return badRow(name)
		}
		if side == 1 || !found {
			return nil
		}
		before, err := at.Previous()
		if err != nil || !before {
			return err
		}
	}
	return nil
}

// getRow gets the row of a key. A missing one has sound neighbours.
func getRow(cursor *env.Cursor, txn *env.Txn, database int, key []byte) (value []byte, found bool, err error) {
	found, err = cursor.Seek(txn, database, key)
	if err != nil {
		return nil, false, err
	}
	if found && bytes.Equal(cursor.Key(), key) {
		value, err = indexRow(key, cursor.Value())
		return value, err == nil, err
	}
	return nil, false, checkAround(cursor, txn, database, key, found)
}

// entry is where the newest version of an object is.
type entry struct {
	object, seq, place    uint64
	placeSize, generation uint32
}

const entryBytes = 32

func readEntry(row []byte) entry {
	return entry{le.Uint64(row), le.Uint64(row[8:]), le.Uint64(row[16:]), le.Uint32(row[24:]), le.Uint32(row[28:])}
}

// indexMeta is the row `s`.
type indexMeta struct {
	journal [16]byte
	taken   uint64
}

func metaKey(tag byte, number uint32) [5]byte {
	key := [5]byte{tag}
	be.PutUint32(key[1:], number)
	return key
}

func readIndexMeta(txn *env.Txn, cursor *env.Cursor) (m indexMeta, err error) {
	key := metaKey('s', 0)
	row, found, err := getRow(cursor, txn, dbIndexMeta, key[:])
	if err != nil {
		return m, err
	}
	if !found || len(row) != 56 {
		return m, badRow("meta")
	}
	copy(m.journal[:], row)
	m.taken = le.Uint64(row[16:])
	return m, nil
}

// eachMeta calls fn for the rows of meta with a tag.
func eachMeta(txn *env.Txn, cursor *env.Cursor, tag byte, fn func(number uint32, row []byte) error) error {
	from := []byte{tag}
	found, err := cursor.Seek(txn, dbIndexMeta, from)
	if err == nil {
		err = checkAround(cursor, txn, dbIndexMeta, from, found)
	}
	var leaf *byte // the last one that was found whole
	for err == nil && found {
		key := cursor.Key()
		row, bad := indexRow(key, cursor.Value())
		if bad != nil || cursor.Leaf() != leaf && !cursor.LeafIsWhole() {
			return badRow("meta")
		}
		leaf = cursor.Leaf()
		if key[0] != tag {
			return nil
		}
		if len(key) != 5 {
			return badRow("meta")
		}
		if err := fn(be.Uint32(key[1:]), row); err != nil {
			return err
		}
		found, err = cursor.Next()
	}
	return err
}

// indexFeed is a row `f`.
type indexFeed struct {
	number                     uint32
	listed, listBegin, objects uint64
	removed                    bool
	rv                         string
}

func (f *indexFeed) visible(taken uint64) uint64 {
	switch {
	case f.listed == 0:
		return 0
	case f.listBegin != 0:
		return f.listBegin - 1
	}
	return taken
}

// read reads the row again.
func (f *indexFeed) read(row []byte) error {
	if len(row) != 96 {
		return badRow("meta")
	}
	rv, _, _ := bytes.Cut(row[32:], []byte{0})
	if string(rv) != f.rv {
		f.rv = string(rv)
	}
	f.listed, f.listBegin, f.objects = le.Uint64(row), le.Uint64(row[8:]), le.Uint64(row[16:])
	f.removed = le.Uint32(row[24:])&1 != 0
	return nil
}

// indexFeeds are the rows `f` in the order of their numbers.
type indexFeeds []indexFeed

// of returns a feed's row; one that was never listed if there is none.
func (all indexFeeds) of(number uint32) (f indexFeed) {
	at, found := slices.BinarySearchFunc(all, number, func(f indexFeed, n uint32) int { return cmp.Compare(f.number, n) })
	if found {
		f = all[at]
	}
	return f
}

// nameKey is the key of an object in `name`.
func nameKey(to []byte, feed uint32, key string) []byte {
	return append(be.AppendUint32(to[:0], feed), key...)
}

func readNameRow(row []byte) (entry, error) {
	if len(row) != entryBytes {
		return entry{}, badRow("name")
	}
	return readEntry(row), nil
}

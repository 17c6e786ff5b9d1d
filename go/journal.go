// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"unsafe"

	"kinf/internal/env"
)

// Databases of the journal, as numbers in journalDatabases.
const (
	dbLog = iota
	dbHead
	dbFeed
	dbMeta
)

var journalDatabases = []string{"log", "head", "feed", "meta"}

// Types of records.
const (
	recordAdded = 1 + iota
	recordModified
	recordDeleted
	recordListBegin
	recordListEnd
	recordFeedAdded
	recordFeedRemoved

	recordHeader = 48
	keyMost      = 507
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
	be         = binary.BigEndian
)

func crc(parts ...[]byte) uint32 {
	var sum uint32
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// record is a value of the log. Its slices point into stored.
type record struct {
	seq, prev, time uint64
	feed            uint32
	kind, flags     byte
	key, uid, rv    []byte
	body            []byte
	stored          []byte
}

func (r *record) isVersion() bool { return r.kind == recordAdded || r.kind == recordModified }
func (r *record) isChange() bool  { return r.isVersion() || r.kind == recordDeleted }

// recordSize returns the size that a record's header says.
func recordSize(header []byte) int {
	return recordHeader + int(le.Uint16(header[30:])) + int(le.Uint16(header[32:])) + int(le.Uint16(header[34:])) +
		int(le.Uint32(header[36:]))
}

// parse reads the header, without a checksum.
func (r *record) parse(stored []byte) bool {
	if len(stored) < recordHeader || recordSize(stored) != len(stored) {
		return false
	}
	*r = record{seq: le.Uint64(stored), prev: le.Uint64(stored[8:]), time: le.Uint64(stored[16:]),
		feed: le.Uint32(stored[24:]), kind: stored[28], flags: stored[29], stored: stored}
	rest := stored[recordHeader:]
	for _, part := range []struct {
		to   *[]byte
		size int
	}{{&r.key, int(le.Uint16(stored[30:]))}, {&r.uid, int(le.Uint16(stored[32:]))}, {&r.rv, int(le.Uint16(stored[34:]))}} {
		*part.to, rest = rest[:part.size:part.size], rest[part.size:]
	}
	r.body = rest
	return r.kind >= recordAdded && r.kind <= recordFeedRemoved && r.prev < r.seq
}

var zeroCRC [4]byte

// isSound checks the whole record's checksum.
func (r *record) isSound() bool {
	return crc(r.stored[:40], zeroCRC[:], r.stored[44:]) == le.Uint32(r.stored[40:])
}

// hasSoundHeader checks the checksum of all but the body.
func (r *record) hasSoundHeader() bool {
	return crc(r.stored[:40], r.stored[recordHeader:len(r.stored)-len(r.body)]) == le.Uint32(r.stored[44:])
}

func aliasText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// object makes an object of a record whose bytes are this process's own.
func (r *record) object() *Object {
	return &Object{Key: aliasText(r.key), UID: aliasText(r.uid), ResourceVersion: aliasText(r.rv), Event: r.seq, Feed: r.feed,
		body: r.body}
}

func seqKey(seq uint64) [8]byte {
	var key [8]byte
	be.PutUint64(key[:], seq)
	return key
}

// journalMeta is the row `journal`.
type journalMeta struct {
	uuid             [16]byte
	nextSeq, horizon uint64
}

// get finds the row of exactly this key.
func get(cursor *env.Cursor, txn *env.Txn, database int, key []byte) ([]byte, bool, error) {
	found, err := cursor.Seek(txn, database, key)
	if err != nil || !found || !bytes.Equal(cursor.Key(), key) {
		return nil, false, err
	}
	return cursor.Value(), true, nil
}

var journalRow = []byte("journal")

func readJournalMeta(txn *env.Txn, cursor *env.Cursor) (m journalMeta, err error) {
	row, _, err := journalRowOf(txn, cursor)
	if err != nil {
		return m, err
	}
	copy(m.uuid[:], row)
	m.nextSeq, m.horizon = le.Uint64(row[24:]), le.Uint64(row[32:])
	if m.nextSeq == 0 || m.horizon >= m.nextSeq {
		err = errJournalRow()
	}
	return m, err
}

// journalRowOf returns the row, and the cluster in it. Both point into the mapping.
func journalRowOf(txn *env.Txn, cursor *env.Cursor) (row, cluster []byte, err error) {
	row, found, err := get(cursor, txn, dbMeta, journalRow)
	if err != nil {
		return nil, nil, err
	}
	const at, size = 48, 48 + 256 + 4
	if found && len(row) == size {
		end := bytes.IndexByte(row[at:size-4], 0)
		if end >= 0 && crc(row[:at+end]) == le.Uint32(row[size-4:]) {
			return row, row[at : at+end], nil
		}
	}
	return nil, nil, errJournalRow()
}

func errJournalRow() error { return say(ErrCorrupt, "the journal's meta row is damaged: %s", remedy) }

// moment is a time by several clocks, in ns; boot: the boot of boottime.
type moment struct{ real, boottime, boot uint64 }

// checkpoint is part 1 of a feed (FORMAT.md, Journal).
type checkpoint struct {
	phase                               uint32
	listBegin, firstList, trimmed, last uint64
	contact                             moment
	rv                                  string
}

// feedKey is the key of a part of a feed.
func feedKey(feed uint32, part byte) [5]byte {
	var key [5]byte
	be.PutUint32(key[:], feed)
	key[4] = part
	return key
}

// feedContent checks a row of a feed, and returns it without its checksum.
func feedContent(key, row []byte) ([]byte, error) {
	n := len(row) - 4
	if n <= 0 || len(key) != 5 || crc(key, row[:n]) != le.Uint32(row[n:]) {
		return nil, say(ErrCorrupt, "journal: a row of a feed is damaged: 'kinf run' lists everything again when it is started")
	}
	return row[:n], nil
}

func readCheckpoint(key, row []byte) (c checkpoint, err error) {
	content, err := feedContent(key, row)
	if err != nil {
		return c, err
	}
	const header = 72
	if len(content) < header || len(content) != header+int(le.Uint16(content[4:]))+int(le.Uint16(content[6:])) {
		return c, say(ErrCorrupt, "journal: a checkpoint has %d bytes", len(content))
	}
	end := header + int(le.Uint16(content[4:]))
	return checkpoint{phase: le.Uint32(content), listBegin: le.Uint64(content[8:]), firstList: le.Uint64(content[24:]),
		trimmed: le.Uint64(content[32:]), last: le.Uint64(content[40:]),
		contact: moment{le.Uint64(content[48:]), le.Uint64(content[56:]), le.Uint64(content[64:])},
		rv:      string(content[header:end])}, nil
}

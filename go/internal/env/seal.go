// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"
	"runtime"
)

// A meta page.
const (
	metaBytes    = 152
	metaPageSize = 40
	metaMap      = 32
	metaFree     = 40 // words: of the list of free pages, its flags and depth
	metaFreeRoot = 80
	metaMain     = 88 // word: of the table of databases, its flags and depth
	metaRoot     = 128
	metaLast     = 136
	metaTxn      = 144

	addresses = uint64(1) << 47
	sealName  = "seal"
	sealTries = 1000 // while a writer commits
)

type meta struct {
	txn, root, seal uint64
	depth           int
	sealed, beyond  bool
}

type seals struct {
	metas            [2]meta
	hasPage          bool
	committed, began uint64
}

type verdict int

const (
	sound verdict = iota
	damaged
	killedInside
)

// sizes are what the meta pages say of the file.
type sizes struct {
	page     int
	mapBytes uint64
}

// readSizes checks what must be right before anything else is read.
func readSizes(f *os.File, path string) (sizes, error) {
	var s sizes
	buffer := make([]byte, metaBytes)
	for i := range 2 {
		if n, _ := f.ReadAt(buffer, int64(i*s.page)); n < metaBytes {
			return s, Say(ErrCorrupt, "'%s/data.mdb' is too short", path)
		}
		own := int(le32(buffer, metaPageSize))
		mapBytes := le64(buffer, metaMap)
		if (i == 1 && own != s.page) || own < 512 || own > 32768 || own&(own-1) != 0 || mapBytes >= addresses ||
			le64(buffer, metaLast) >= mapBytes/uint64(own) || le16(buffer, metaFree+4) != 8 || le16(buffer, metaMain+4) != 0 {
			return s, Say(ErrCorrupt, "'%s/data.mdb' is damaged: its meta pages have sizes of pages, of the map or of a "+
				"state, or flags, that can't be", path)
		}
		s.page = own
		s.mapBytes = max(s.mapBytes, mapBytes)
	}
	return s, nil
}

// findSeal finds the seal in the table of databases, a leaf of any bytes.
func (m *meta) findSeal(page []byte) {
	end := le16(page, pageLower)
	if le64(page, 0) != m.root || pageKind(page) != kindLeaf || end > len(page) || end%2 != 0 {
		return
	}
	for at := pageHeader; at < end; at += 2 {
		node := le16(page, at)
		if node < end || node+nodeHeader > len(page) {
			m.sealed = false
			return
		}
		key, value := le16(page, node+nodeKeySize), int(le32(page, node))
		if le16(page, node+nodeFlags)&^nodeTable != 0 || node+nodeHeader+key+value > len(page) {
			m.sealed = false
			return
		}
		if string(nodeKey(page, node)) == sealName && value == 8 {
			m.sealed = true
			m.seal = le64(page, node+nodeHeader+key)
		}
	}
}

func readMetas(f *os.File, pageSize int) (metas [2]meta, ok bool) {
	buffer := make([]byte, metaBytes)
	for i := range metas {
		if n, _ := f.ReadAt(buffer, int64(i*pageSize)); n < metaBytes {
			return metas, false
		}
		metas[i] = meta{txn: le64(buffer, metaTxn), root: le64(buffer, metaRoot), depth: le16(buffer, metaMain+6)}
	}
	return metas, true
}

// readSeals reads both meta pages with their seals, and the pin page; ok is false while they change.
func readSeals(f *os.File, path string, inode uint64, pageSize int) (s seals, ok bool) {
	probe := func() (bool, uint64, uint64) {
		page := readPinPage(path, inode)
		if page == nil {
			return false, 0, 0
		}
		return true, page.word(pinCommitted), page.word(pinBegan)
	}
	s.hasPage, s.committed, s.began = probe()
	if s.metas, ok = readMetas(f, pageSize); !ok {
		return s, false
	}
	before := s.metas
	buffer := make([]byte, pageSize)
	for i := range s.metas {
		m := &s.metas[i]
		if m.depth != 1 || m.root >= addresses/uint64(pageSize) {
			continue
		}
		n, _ := f.ReadAt(buffer, int64(m.root)*int64(pageSize))
		m.beyond = n < pageSize
		if !m.beyond {
			m.findSeal(buffer)
		}
	}
	after, ok := readMetas(f, pageSize)
	hasPage, committed, began := probe()
	return s, ok && after == before && hasPage == s.hasPage && committed == s.committed && began == s.began
}

func (s *seals) newest() (newest, other *meta) {
	if s.metas[1].txn > s.metas[0].txn {
		return &s.metas[1], &s.metas[0]
	}
	return &s.metas[0], &s.metas[1]
}

// judge applies the rule of seals (FORMAT.md, Generations).
func (s *seals) judge() verdict {
	newest, other := s.newest()
	txn := newest.txn
	if txn == 0 || newest.beyond { // a cut file is reported as one
		return sound
	}
	if newest.sealed && newest.seal == txn {
		wasNewest := other.sealed && other.seal == txn+1
		isKilled := other.txn == txn-1 && !(s.hasPage && s.committed > txn)
		if wasNewest && !isKilled {
			return damaged
		}
		return sound
	}
	isKilled := newest.sealed && newest.seal == txn-2
	if s.hasPage {
		isKilled = s.began == txn && s.committed == txn-1
	}
	if isKilled && other.sealed && other.seal == other.txn && other.txn == txn-1 {
		return killedInside
	}
	return damaged
}

// checkSeals refuses a file whose meta pages do not lead to their own states.
func checkSeals(f *os.File, path string, inode uint64, pageSize int) error {
	var s seals
	result := sound
	for range sealTries {
		var ok bool
		s, ok = readSeals(f, path, inode, pageSize)
		result = sound
		if ok {
			result = s.judge()
		}
		if ok && result != killedInside { // a writer may only be in the middle of a commit
			break
		}
		runtime.Gosched()
	}
	switch result {
	case killedInside:
		return Say(ErrLocked, "'%s' can't be read, because its daemon was killed in the middle of a commit: start the "+
			"daemons, which undo it", path)
	case damaged:
		bad, other := s.newest()
		if bad.sealed && bad.seal == bad.txn {
			bad = other
		}
		return Say(ErrCorrupt, "'%s/data.mdb' is damaged: the meta page of state %d leads to another state", path, bad.txn)
	}
	return nil
}

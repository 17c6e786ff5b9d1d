// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options of opening an environment.
type Options struct {
	Databases []string // names, in the order of their numbers here
	Places    []string // directories for pin files
	Pinned    bool     // beside daemons; else it is a copy, read without pins
}

const (
	missingMost = 16 // pages that LMDB took and gave back in one transaction are not written
	beginSpins  = 64
	stalled     = 5 * time.Millisecond // a writer that publishes no commit for so long is stopped or dead
	lost        = 5 * time.Second      // page and data can't belong together
)

// An Env is LMDB's environment, open for reading. It is unmapped at the last Release.
type Env struct {
	path        string
	names       []string
	file        *os.File
	data        []byte
	pageSize    int
	id          FileID
	page        atomic.Pointer[pinPage] // nil: a copy
	pins        *pins
	unpublished atomic.Uint64 // a commit that its writer has not published for long

	mu    sync.Mutex
	refs  int
	pages []*pinPage // all that were mapped
}

// Open opens data.mdb in the directory of a generation. The caller has checked STATE.
func Open(path string, options Options) (_ *Env, err error) {
	if !supported {
		return nil, Say(ErrUnsupported, "stores can be read on Linux only")
	}
	if math.MaxInt == math.MaxInt32 {
		return nil, Say(ErrUnsupported, "stores can be read by 64-bit programs only")
	}
	if options.Pinned && isOn(path, networkFileSystems) {
		return nil, Say(ErrUnsupported, "'%s' is on a network file system, where shared memory is not reliable: "+
			"put the store on a local disk", path)
	}
	e := &Env{path: path, names: options.Databases, refs: 1}
	opened := false // also false after a fault
	defer func() {
		if !opened {
			e.Release()
		}
	}()
	if e.file, err = os.Open(path + "/data.mdb"); err != nil {
		return nil, err
	}
	info, err := e.file.Stat()
	if err != nil {
		return nil, err
	}
	e.id = idOf(info)
	found, err := readSizes(e.file, path)
	if err != nil {
		return nil, err
	}
	e.pageSize = found.page
	if err = checkSeals(e.file, path, e.id.Inode, found.page); err != nil {
		return nil, err
	}
	if found.mapBytes > math.MaxInt {
		return nil, Say(ErrUnsupported, "'%s/data.mdb' has a map too large for this machine", path)
	}
	if e.data, err = mapShared(e.file, int(found.mapBytes), false); err != nil {
		return nil, fmt.Errorf("mapping '%s/data.mdb': %w", path, err)
	}
	mapRandom(e.data)
	if err = e.settle(options); err != nil {
		return nil, err
	}
	opened = true
	return e, nil
}

// settle takes the environment into use: its pins, then a check of its trees under one.
func (e *Env) settle(options Options) error {
	if options.Pinned {
		page := mapPinPage(e.path, e.id.Inode)
		if page == nil {
			return Say(ErrLocked, "'%s' can't be read while its file 'pins' is missing or is that of another copy: "+
				"start its daemons, which make it", e.path)
		}
		e.usePage(page)
		e.pins = &pins{directory: e.path, inode: e.id.Inode, places: options.Places}
	}
	var txn Txn
	defer txn.End()
	if err := txn.Begin(e); err != nil {
		return err
	}
	info, err := e.file.Stat()
	if err != nil {
		return err
	}
	inFile := uint64(info.Size()) / uint64(e.pageSize)
	if inFile+missingMost < txn.pages {
		return Say(ErrCorrupt, "'%s/data.mdb' was cut: %d of %d bytes are there", e.path, info.Size(),
			txn.pages*uint64(e.pageSize))
	}
	if options.Pinned && e.isCheckedByWriter() {
		return nil
	}
	return txn.checkTrees(inFile)
}

// Retain keeps the environment open until one more Release.
func (e *Env) Retain() {
	e.mu.Lock()
	e.refs++
	e.mu.Unlock()
}

// Release gives a reference back.
func (e *Env) Release() {
	e.mu.Lock()
	e.refs--
	last := e.refs == 0
	e.mu.Unlock()
	if !last {
		return
	}
	if e.pins != nil {
		e.pins.close()
	}
	for _, page := range e.pages {
		unmap(page.bytes)
	}
	if e.data != nil {
		unmap(e.data)
	}
	if e.file != nil {
		_ = e.file.Close()
	}
}

// IsPinned tells whether its readers pin what they read; else it is a copy.
func (e *Env) IsPinned() bool { return e.pins != nil }

// Path returns the directory of the generation.
func (e *Env) Path() string { return e.path }

func (e *Env) usePage(page *pinPage) {
	e.mu.Lock()
	e.pages = append(e.pages, page)
	e.mu.Unlock()
	e.page.Store(page)
}

// findPage takes a new page of another writer, if the one in use was removed.
func (e *Env) findPage() {
	page := mapPinPage(e.path, e.id.Inode)
	if page == nil {
		return
	}
	if page.word(pinEpoch) != e.page.Load().word(pinEpoch) { // each page begins at a random epoch
		e.usePage(page)
	} else {
		unmap(page.bytes)
	}
}

func (e *Env) isCheckedByWriter() bool {
	f, err := OpenQuietly(e.path + "/pins")
	if err != nil {
		return false
	}
	defer f.Close()
	locked, err := isWriteLocked(f, pinMarkChecked, 1)
	return err == nil && locked
}

// ---- transactions --------------------------------------------------------

// A Txn is a read transaction. The zero value is none. One goroutine uses it at a time.
type Txn struct {
	env      *Env
	pin      pin
	active   bool
	id       uint64
	pages    uint64 // of its state
	root     uint64 // of the table of databases
	free     tree
	trees    []tree
	rootedAt uint64 // the id that trees are of; 0: none
}

// tree is the root of a database's tree, and the number of its levels.
type tree struct {
	root  uint64
	depth int
}

// readState reads the newest meta page. A writer may be changing it: the caller checks.
func (t *Txn) readState() {
	data, at := t.env.data, 0
	if loadWord(data, t.env.pageSize+metaTxn) > loadWord(data, metaTxn) {
		at = t.env.pageSize
	}
	t.id = loadWord(data, at+metaTxn)
	t.root = loadWord(data, at+metaRoot)
	t.free = tree{loadWord(data, at+metaFreeRoot), int(loadWord(data, at+metaFree) >> 48)}
	t.pages = loadWord(data, at+metaLast) + 1
	if loadWord(data, at+metaMain)>>48 != 1 {
		t.root = ^uint64(0) // a table of another shape than the seals require
	}
}

// Begin begins the transaction, or begins it again at the newest state.
func (t *Txn) Begin(e *Env) error {
	if t.env != e {
		t.End()
		t.env = e
		t.rootedAt = 0
	}
	t.active = false
	var err error
	if e.pins == nil {
		err = t.beginUnpinned()
	} else {
		err = t.beginPinned()
	}
	if err != nil {
		return err
	}
	if t.pages > uint64(len(e.data)/e.pageSize) {
		return Say(ErrReplaced, "'%s/data.mdb' has outgrown its map", e.path)
	}
	t.active = true
	if t.rootedAt == t.id {
		return nil
	}
	if err := t.findTrees(); err != nil {
		return err
	}
	t.rootedAt = t.id
	return nil
}

func (t *Txn) beginUnpinned() error {
	for {
		t.readState()
		again := *t
		again.readState()
		if t.id == again.id && t.root == again.root && t.pages == again.pages {
			return nil
		}
		runtime.Gosched()
	}
}

// beginPinned pins the newest state and reads it: the reader's steps in FORMAT.md, Pins.
func (t *Txn) beginPinned() error {
	e := t.env
	var since time.Time
	for spins := 0; ; spins++ {
		if spins > beginSpins {
			if since.IsZero() {
				since = time.Now()
			}
			if err := t.tryPage(since); err != nil {
				return err
			}
		}
		page := e.page.Load()
		if t.pin.file == nil || t.pin.epoch != page.word(pinEpoch) {
			if err := e.pins.take(page, &t.pin); err != nil {
				return err
			}
		}
		committed := page.word(pinCommitted)
		if err := t.pin.set(max(committed, 1)); err != nil {
			e.pins.giveOrDrop(&t.pin, true)
			continue
		}
		if oldest := page.word(pinOldest); oldest > committed {
			if oldest == pinClosed {
				return Say(ErrReplaced, "'%s/data.mdb' was replaced by a copy", e.path)
			}
			continue
		}
		t.readState()
		began := page.word(pinBegan)
		if began <= t.id+1 && t.id <= committed {
			return nil
		}
		published := t.id <= page.word(pinCommitted)
		if began <= t.id+1 && (published || e.unpublished.Load() == t.id) {
			return nil
		}
		if !published {
			e.waitPublished(t.id)
		}
	}
}

// tryPage takes a newer pin page, after many tries in vain.
func (t *Txn) tryPage(since time.Time) error {
	before := t.env.page.Load()
	t.env.findPage()
	if t.env.page.Load() != before {
		return nil
	}
	waited := time.Since(since)
	if waited > lost {
		return Say(ErrLocked, "'%s': its file 'pins' does not belong to its data.mdb: restart the daemons", t.env.path)
	}
	if waited > stalled {
		time.Sleep(time.Millisecond)
	} else {
		runtime.Gosched()
	}
	return nil
}

// waitPublished waits for the writer to publish its commit, or until its stores must be visible.
func (e *Env) waitPublished(id uint64) {
	began := time.Now()
	for e.page.Load().word(pinCommitted) < id {
		if time.Since(began) > stalled {
			e.unpublished.Store(id)
			e.findPage()
			return
		}
		runtime.Gosched()
	}
}

// Reset gives the pages back and keeps the slot.
func (t *Txn) Reset() {
	t.active = false
	if t.pin.file != nil && t.pin.set(0) != nil {
		t.env.pins.giveOrDrop(&t.pin, true)
	}
}

// End gives the slot back too.
func (t *Txn) End() {
	t.active = false
	if t.pin.file != nil {
		t.env.pins.give(&t.pin)
	}
	t.env = nil
}

// ID returns the number of the state.
func (t *Txn) ID() uint64 { return t.id }

// Active tells whether it has begun and not ended.
func (t *Txn) Active() bool { return t.active }

// Check tells whether all that was read since Begin is right. It may be wrong after the pages of a
// replaced file were taken away, or after a copy was written.
func (t *Txn) Check() error {
	if !t.active {
		return nil
	}
	if page := t.env.page.Load(); page != nil {
		if page.word(pinGivenUp) != 0 {
			return Say(ErrExpired, "the snapshot was held for too long: its file was replaced, and its space taken back; "+
				"take another one, and hold it for less than a minute")
		}
		return nil
	}
	now := Txn{env: t.env}
	now.readState()
	if now.id != t.id {
		return Say(ErrExpired, "the store was written while it was read as a copy: read it again")
	}
	return nil
}

func (t *Txn) damaged(page uint64, how string) error {
	return Say(ErrCorrupt, "'%s/data.mdb' is damaged: page %d %s", t.env.path, page, how)
}

// pageAt returns page number if it is of a kind.
func (t *Txn) pageAt(number uint64, kind int) ([]byte, error) {
	if number < t.pages {
		size := t.env.pageSize
		at := int(number) * size
		page := t.env.data[at : at+size : at+size]
		if le64(page, 0) == number && pageKind(page) == kind && (kind == kindLarge || le16(page, pageLower) <= size) {
			return page, nil
		}
	}
	return nil, t.damaged(number, "is not of the kind that was expected there")
}

// findTrees reads the table of databases, which is one leaf.
func (t *Txn) findTrees() error {
	if t.id == 0 {
		return Say(ErrCorrupt, "'%s/data.mdb' has no state", t.env.path)
	}
	page, err := t.pageAt(t.root, kindLeaf)
	if err != nil {
		return err
	}
	t.trees = t.trees[:0]
	for _, name := range t.env.names {
		found := false
		for i := 0; i < pageRows(page) && !found; i++ {
			node, ok := pageRow(page, i)
			if !ok {
				return t.damaged(t.root, "has a row outside of it")
			}
			value := node + nodeHeader + le16(page, node+nodeKeySize)
			if string(nodeKey(page, node)) != name {
				continue
			}
			if le32(page, node) != databaseBytes || value+databaseBytes > len(page) {
				return t.damaged(t.root, "has a row of a database that is too short")
			}
			row := tree{le64(page, value+databaseRoot), le16(page, value+databaseDepth)}
			if row.depth > depthMost || le16(page, value+databaseFlags) != 0 || (row.depth == 0) != (row.root == ^uint64(0)) {
				return t.damaged(t.root, "has a row of a database that can't be")
			}
			t.trees = append(t.trees, row)
			found = true
		}
		if !found {
			return t.damaged(t.root, "lacks the database '"+name+"'")
		}
	}
	return nil
}

// At returns size bytes from an offset on, a value in overflow pages; nil: there is no such value.
func (t *Txn) At(offset uint64, size int) []byte {
	end := t.pages * uint64(t.env.pageSize)
	if offset%uint64(t.env.pageSize) != pageHeader || offset >= end || uint64(size) > end-offset {
		return nil
	}
	return t.env.data[offset : offset+uint64(size) : offset+uint64(size)]
}

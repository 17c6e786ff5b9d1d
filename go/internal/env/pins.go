// SPDX-License-Identifier: Apache-2.0

package env

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Pin files (FORMAT.md, Pins).
const (
	pinFileMagic  = 0x31656c69666e6970 // "pinfile1"
	pinSlotBytes  = 64
	pinChunkBytes = 4096
	pinChunkSlots = pinChunkBytes / pinSlotBytes
	pinChunksMax  = 64
	pinMakeTries  = 8 // a writer may remove a file before it is locked
)

type pinKind int

const (
	pinMapped  pinKind = iota // stored into a map
	pinWritten                // each pin is a write(2)
	pinMark                   // no file: a lock pins all states
)

// pinFile holds the pins of one environment in this process.
type pinFile struct {
	kind       pinKind
	path       string
	file, mark *os.File
	memory     []byte // the map; of the other kinds, memory of this process
	chunks     int
	used       [pinChunksMax]uint64
	pins       int
	place      FileID
}

// pins gives slots.
type pins struct {
	mu        sync.Mutex
	directory string // of the generation
	inode     uint64
	places    []string
	file      *pinFile // for new slots
	epoch     uint64   // when it was last found in place
}

// A pin is a slot; without a file, none.
type pin struct {
	file   *pinFile
	word   *uint64
	number int
	epoch  uint64
}

// set stores a pin. An error leaves the file's word unknown.
func (p *pin) set(value uint64) error {
	atomic.StoreUint64(p.word, value)
	if p.file.kind != pinWritten {
		return nil
	}
	at := p.number * pinSlotBytes
	return p.file.write(at, at+8)
}

func (f *pinFile) write(from, to int) error {
	_, err := f.file.WriteAt(f.memory[from:to], int64(from))
	return err
}

func (f *pinFile) close() {
	if f.kind == pinMapped && f.memory != nil {
		unmap(f.memory)
	}
	if f.file != nil {
		_ = os.Remove(f.path) // else the daemons remove it
		_ = f.file.Close()
	}
	if f.mark != nil {
		_ = f.mark.Close()
	}
}

func (f *pinFile) grow() error {
	if f.chunks == pinChunksMax {
		return Say(ErrNoRoom, "this process holds %d snapshots of one database, the most possible: close unneeded ones",
			pinChunksMax*pinChunkSlots-1)
	}
	if f.kind != pinMark {
		if err := reserve(f.file, int64(f.chunks)*pinChunkBytes, pinChunkBytes); err != nil {
			return fmt.Errorf("making '%s' longer: %w", f.path, err)
		}
	}
	if f.memory == nil {
		f.used[0] = 1 // the head
		if f.kind == pinMapped {
			memory, err := mapShared(f.file, pinChunksMax*pinChunkBytes, true)
			if err != nil {
				return fmt.Errorf("mapping '%s': %w", f.path, err)
			}
			f.memory = memory
		} else {
			f.memory = make([]byte, pinChunksMax*pinChunkBytes)
		}
	}
	f.chunks++
	return nil
}

// describe fills the first slot.
func (f *pinFile) describe() error {
	le := binary.LittleEndian
	le.PutUint32(f.memory[8:], 1)
	le.PutUint32(f.memory[12:], uint32(os.Getpid()))
	le.PutUint64(f.memory[16:], pidNamespace())
	copy(f.memory[24:39], filepath.Base(os.Args[0]))
	le.PutUint64(f.memory, pinFileMagic)
	if f.kind == pinWritten {
		return f.write(0, pinChunkBytes)
	}
	return nil
}

func (f *pinFile) markByte(page string, at int64) error {
	mark, err := OpenQuietly(page)
	if err != nil {
		return err
	}
	f.mark = mark
	if err := lockRead(mark, at); err != nil {
		return fmt.Errorf("marking '%s': %w", page, err)
	}
	return nil
}

func randomWord() uint64 {
	var word [8]byte
	_, _ = rand.Read(word[:]) // never fails
	return binary.LittleEndian.Uint64(word[:])
}

var errPinAgain = errors.New("the pin file was removed before it was locked")

// makeIn makes a file in a place. It is locked before others may open it.
func (p *pins) makeIn(place string, id FileID) (_ *pinFile, err error) {
	number := randomWord() & pinNumberMax
	f := &pinFile{path: fmt.Sprintf("%s/%016x-%016x", place, p.inode, number), place: id}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.file, err = createPinFile(f.path); err != nil {
		return nil, err
	}
	if now, _ := Identify(place); now != id {
		return nil, errPinAgain
	}
	if !isOn(f.path, keptFileSystems) {
		f.kind = pinWritten
	}
	if err = LockWrite(f.file); err != nil {
		if isLockedBy(err) {
			err = errPinAgain
		}
		return nil, err
	}
	if err = f.markByte(p.directory+"/pins", int64(number)); err != nil {
		return nil, err
	}
	if err = f.grow(); err != nil {
		return nil, err
	}
	if err = f.describe(); err != nil {
		return nil, err
	}
	if err = f.file.Chmod(0o644); err != nil {
		return nil, err
	}
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	if _, links := Owner(info); links == 0 {
		return nil, errPinAgain
	}
	return f, nil
}

func (p *pins) make(page *pinPage) (*pinFile, error) {
	var last error = errors.New("the store has neither a directory 'pins' nor a runtime directory")
	for _, place := range p.places {
		id, ok := Identify(place)
		if !ok {
			continue
		}
		if !page.scans(id) {
			last = fmt.Errorf("'%s' is another directory here than for the store's daemons", place)
			continue
		}
		for range pinMakeTries {
			file, err := p.makeIn(place, id)
			if err == nil {
				return file, nil
			}
			last = err
			if err != errPinAgain {
				break
			}
		}
		if isFull(last) {
			break // another directory would not help
		}
	}
	if isFull(last) {
		return nil, last
	}
	return nil, Say(ErrLocked, "a reader needs a directory for its pin file: %v. Mount the daemons' runtime directory "+
		"at the same path, writable (the store itself may be read-only), and join its group", last)
}

// makeMark holds all states by a lock, on a full disk.
func (p *pins) makeMark() (*pinFile, error) {
	f := &pinFile{kind: pinMark}
	err := f.markByte(p.directory+"/pins", pinMarkAll)
	if err == nil {
		err = f.grow()
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// inPlace tells whether the file is where it was made, and the writer looks there.
func (f *pinFile) inPlace(page *pinPage) bool {
	if f.kind == pinMark || !page.scans(f.place) {
		return false
	}
	there, ok := Identify(f.path)
	info, err := f.file.Stat()
	return ok && err == nil && idOf(info) == there
}

// use takes file, nil for none, for new slots.
func (p *pins) use(file *pinFile) {
	if before := p.file; before != nil && before.pins == 0 {
		before.close()
	}
	p.file = file
}

func (p *pins) findFile(page *pinPage, epoch uint64) error {
	isMark := p.file != nil && p.file.kind == pinMark
	if p.file != nil && !isMark && (epoch == p.epoch || p.file.inPlace(page)) {
		return nil
	}
	if !isMark {
		p.use(nil)
	}
	file, err := p.make(page)
	if err == nil {
		p.use(file)
		return nil
	}
	if !isFull(err) && !DiskIsFull(p.directory) {
		return err
	}
	if isMark {
		return nil
	}
	file, err = p.makeMark()
	if err == nil {
		p.use(file)
	}
	return err
}

func (f *pinFile) takeSlot(epoch uint64) (pin, error) {
	for i := 0; i < pinChunksMax; i++ {
		if i == f.chunks {
			if err := f.grow(); err != nil {
				return pin{}, err
			}
		}
		if f.used[i] == ^uint64(0) {
			continue
		}
		bit := bits.TrailingZeros64(^f.used[i])
		number := i*pinChunkSlots + bit
		slots := (*uint32)(unsafe.Pointer(&f.memory[8]))
		if before := atomic.LoadUint32(slots); uint32(number) >= before {
			atomic.StoreUint32(slots, uint32(number)+1)
			if f.kind == pinWritten {
				if err := f.write(0, pinSlotBytes); err != nil {
					atomic.StoreUint32(slots, before)
					return pin{}, err
				}
			}
		}
		f.used[i] |= 1 << bit
		f.pins++
		word := (*uint64)(unsafe.Pointer(&f.memory[number*pinSlotBytes]))
		return pin{file: f, word: word, number: number, epoch: epoch}, nil
	}
	return pin{}, f.grow() // says that it is full
}

// take makes at a slot in a file that the page's writer scans.
func (p *pins) take(page *pinPage, at *pin) error {
	for {
		// A starting writer changes the places, then the epoch, and then scans the old places.
		epoch := page.word(pinEpoch)
		if at.file != nil && at.file.inPlace(page) {
			at.epoch = epoch
		} else {
			p.give(at)
			p.mu.Lock()
			err := p.findFile(page, epoch)
			if err == nil {
				p.epoch = epoch
				*at, err = p.file.takeSlot(epoch)
			}
			p.mu.Unlock()
			if err != nil {
				return err
			}
		}
		if page.word(pinEpoch) == epoch {
			return nil
		}
	}
}

func (p *pins) give(at *pin) {
	if at.file == nil {
		return
	}
	p.giveOrDrop(at, at.set(0) != nil)
}

// giveOrDrop gives the slot back; no more slots come from a lost file, or a mark without pins.
func (p *pins) giveOrDrop(at *pin, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := at.file
	f.used[at.number/pinChunkSlots] &^= 1 << (at.number % pinChunkSlots)
	f.pins--
	if f == p.file && (lost || (f.kind == pinMark && f.pins == 0)) {
		p.file = nil
	}
	if f.pins == 0 && f != p.file {
		f.close()
	}
	*at = pin{}
}

func (p *pins) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use(nil)
}

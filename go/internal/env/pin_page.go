// SPDX-License-Identifier: Apache-2.0

package env

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"unsafe"
)

// The pin page (FORMAT.md, Pins).
const (
	pinPageBytes = 4096
	pinPageMagic = 0x31736e69706e696b // "kinpins1"

	pinCommitted = 128
	pinBegan     = 136
	pinOldest    = 256
	pinEpoch     = 272
	pinGivenUp   = 384
	pinScanned   = 512
	pinScannedN  = 2

	pinClosed = ^uint64(0) // oldest: no more pins

	pinNumberMax = uint64(1)<<62 - 1
	// Bytes of the pin page, beyond its end, that are locked.
	pinMarkAll     = int64(1) << 62
	pinMarkChecked = int64(1)<<62 + 1
)

// A pinPage is the map of a pin page, or a copy of its bytes.
type pinPage struct{ bytes []byte }

func (p *pinPage) word(at int) uint64 { return loadWord(p.bytes, at) }

// loadWord loads an aligned word of a mapping. Loads are in order, as sync/atomic promises.
func loadWord(data []byte, at int) uint64 {
	_ = data[at+7]
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&data[at])))
}

// readPinPage reads the page of a generation; nil: there is none, or it is another file's.
func readPinPage(directory string, inode uint64) *pinPage {
	f, err := OpenQuietly(directory + "/pins")
	if err != nil {
		return nil
	}
	defer f.Close()
	return readPinPageOf(f, inode)
}

func readPinPageOf(f *os.File, inode uint64) *pinPage {
	bytes := make([]byte, pinPageBytes)
	if n, _ := f.ReadAt(bytes, 0); n != len(bytes) {
		return nil
	}
	if binary.LittleEndian.Uint64(bytes) != pinPageMagic || binary.LittleEndian.Uint64(bytes[8:]) != inode {
		return nil
	}
	return &pinPage{bytes}
}

// mapPinPage maps the page; nil: as readPinPage.
func mapPinPage(directory string, inode uint64) *pinPage {
	f, err := OpenQuietly(directory + "/pins")
	if err != nil {
		return nil
	}
	defer f.Close()
	if readPinPageOf(f, inode) == nil {
		return nil
	}
	data, err := mapShared(f, pinPageBytes, false)
	if err != nil {
		return nil
	}
	return &pinPage{data}
}

// scans tells whether the writer of the page looks for pin files in a directory.
func (p *pinPage) scans(id FileID) bool {
	for i := range pinScannedN {
		if id.Inode != 0 && p.word(pinScanned+16*i) == id.Device && p.word(pinScanned+16*i+8) == id.Inode {
			return true
		}
	}
	return false
}

// Scans tells whether the writer of the generation in directory looks for pin files in the directory
// id. Known is false without a pin page.
func Scans(directory string, id FileID) (scans, known bool) {
	data, ok := Identify(directory + "/data.mdb")
	if !ok {
		return false, false
	}
	page := readPinPage(directory, data.Inode)
	if page == nil {
		return false, false
	}
	return page.scans(id), true
}

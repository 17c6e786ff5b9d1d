// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync/atomic"
	"time"
	"unsafe"
)

// A Shared is a read-only map of a small file that another process writes: a status page, the taken
// word.
type Shared struct {
	bytes []byte
	id    FileID
}

// MapFile maps a file of at least size bytes.
func MapFile(path string, size int) (*Shared, error) {
	f, err := OpenQuietly(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < int64(size) || !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "map", Path: path, Err: os.ErrNotExist} // it is being made
	}
	data, err := mapShared(f, size, false)
	if err != nil {
		return nil, err
	}
	return &Shared{data, idOf(info)}, nil
}

// Close unmaps the file.
func (s *Shared) Close() { unmap(s.bytes) }

// Is tells whether path still is the file that was mapped.
func (s *Shared) Is(path string) bool {
	id, ok := Identify(path)
	return ok && id == s.id
}

// Word and Word32 load a word.
func (s *Shared) Word(at int) uint64 { return loadWord(s.bytes, at) }
func (s *Shared) Word32(at int) uint32 {
	_ = s.bytes[at+3]
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&s.bytes[at])))
}

// Wait sleeps on a futex word until it has another value or is woken.
func (s *Shared) Wait(at int, value uint32, most time.Duration) {
	futexWait((*uint32)(unsafe.Pointer(&s.bytes[at])), value, most)
}

const sequenceTries = 100

// Words copies n words after their sequence number (FORMAT.md, Status pages). False: a writer has not
// finished.
func (s *Shared) Words(at, n int) ([]byte, bool) {
	to := make([]byte, 8*n)
	for range sequenceTries {
		before := s.Word(at)
		for i := range n {
			binary.NativeEndian.PutUint64(to[8*i:], s.Word(at+8+8*i))
		}
		if before%2 == 0 && s.Word(at) == before {
			return to, true
		}
	}
	return nil, false
}

// Text reads a text after its sequence number; "" while it is written.
func (s *Shared) Text(at int) string {
	words, _ := s.Words(at, 30)
	text, _, _ := bytes.Cut(words, []byte{0})
	return string(text)
}

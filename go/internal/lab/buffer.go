// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lab

import (
	"bytes"
	"sync"
)

// buffer is written by a process and read by its test.
type buffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.String()
}

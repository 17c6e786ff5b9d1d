// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// A Doorbell is a connection to the reflector's socket (FORMAT.md, Doorbell).
type Doorbell struct{ conn net.Conn }

// DialDoorbell connects to the reflector of a runtime directory.
func DialDoorbell(runtime string) (*Doorbell, error) {
	directory, err := os.Open(runtime) // by its descriptor: its path may be too long for an address
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	conn, err := net.DialTimeout("unix", fmt.Sprintf("/proc/self/fd/%d/doorbell.sock", directory.Fd()), time.Second)
	if err != nil {
		return nil, err
	}
	return &Doorbell{conn}, nil
}

// Arm asks for a byte after the next commit. What is read after it misses none.
func (b *Doorbell) Arm() error {
	_, err := b.conn.Write([]byte{0})
	return err
}

// Wait waits for the byte. False without an error: the time is over.
func (b *Doorbell) Wait(most time.Duration) (bool, error) {
	var bytes [16]byte
	if err := b.conn.SetReadDeadline(time.Now().Add(most)); err != nil {
		return false, err
	}
	_, err := b.conn.Read(bytes[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// Close hangs up.
func (b *Doorbell) Close() { _ = b.conn.Close() }

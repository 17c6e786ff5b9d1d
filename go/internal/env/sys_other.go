// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package env

import (
	"os"
	"time"
)

const supported = false

// FileID is the identity of a file.
type FileID struct{ Device, Inode uint64 }

func idOf(os.FileInfo) FileID { return FileID{} }

// Identify returns the identity of the file at path, and whether it is there.
func Identify(string) (FileID, bool) { return FileID{}, false }

// Owner returns the user and the number of links of a file.
func Owner(os.FileInfo) (uid uint32, links uint64) { return 0, 1 }

func mapShared(*os.File, int, bool) ([]byte, error) { return nil, ErrUnsupported }
func mapRandom([]byte)                              {}
func unmap([]byte)                                  {}

// LockWrite takes the write lock of an open file.
func LockWrite(*os.File) error { return ErrUnsupported }

func lockRead(*os.File, int64) error                     { return ErrUnsupported }
func isWriteLocked(*os.File, int64, int64) (bool, error) { return false, ErrUnsupported }
func createPinFile(string) (*os.File, error)             { return nil, ErrUnsupported }
func reserve(*os.File, int64, int64) error               { return ErrUnsupported }
func isFull(error) bool                                  { return false }
func isLockedBy(error) bool                              { return false }

// OpenQuietly opens a file for reading.
func OpenQuietly(path string) (*os.File, error) { return os.Open(path) }

// OpenLock opens or makes a lock file.
func OpenLock(string) (*os.File, error) { return nil, ErrUnsupported }

// DiskIsFull tells whether a file system has no room for a pin file.
func DiskIsFull(string) bool     { return false }
func isOn(string, []uint32) bool { return false }
func pidNamespace() uint64       { return 0 }

// IsLocked tells whether a process has the write lock of the file at path.
func IsLocked(string) bool { return false }

// MayWrite tells whether this process may make files in a directory.
func MayWrite(string) bool { return false }

var keptFileSystems, networkFileSystems []uint32

// Monotonic and Boottime return the time of CLOCK_MONOTONIC and CLOCK_BOOTTIME, in ns.
func Monotonic() uint64 { return 0 }
func Boottime() uint64  { return 0 }

func futexWait(_ *uint32, _ uint32, most time.Duration) { time.Sleep(most) }

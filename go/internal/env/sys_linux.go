// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

const supported = true

const (
	ofdGetLock = 36 // F_OFD_GETLK
	ofdSetLock = 37 // F_OFD_SETLK
)

// FileID is the identity of a file.
type FileID struct{ Device, Inode uint64 }

func idOf(info os.FileInfo) FileID {
	st := info.Sys().(*syscall.Stat_t)
	return FileID{uint64(st.Dev), st.Ino}
}

// Identify returns the identity of the file at path, and whether it is there.
func Identify(path string) (FileID, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return FileID{}, false
	}
	return idOf(info), true
}

// Owner returns the user and the number of links of a file.
func Owner(info os.FileInfo) (uid uint32, links uint64) {
	st := info.Sys().(*syscall.Stat_t)
	return st.Uid, uint64(st.Nlink)
}

func mapShared(f *os.File, size int, write bool) ([]byte, error) {
	protection := syscall.PROT_READ
	if write {
		protection |= syscall.PROT_WRITE
	}
	return syscall.Mmap(int(f.Fd()), 0, size, protection, syscall.MAP_SHARED)
}

func mapRandom(data []byte) { _ = syscall.Madvise(data, syscall.MADV_RANDOM) } // only saves memory

func unmap(data []byte) { _ = syscall.Munmap(data) } // fails for no mapping of ours

func lockByte(f *os.File, kind int16, start, length int64) error {
	lock := syscall.Flock_t{Type: kind, Start: start, Len: length}
	return syscall.FcntlFlock(f.Fd(), ofdSetLock, &lock)
}

// LockWrite takes the write lock of an open file, on all of it, unless another one has it.
func LockWrite(f *os.File) error { return lockByte(f, syscall.F_WRLCK, 0, 0) }

func lockRead(f *os.File, at int64) error { return lockByte(f, syscall.F_RDLCK, at, 1) }

// isWriteLocked tells whether another open file has a write lock in the range.
func isWriteLocked(f *os.File, start, length int64) (bool, error) {
	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Start: start, Len: length}
	if err := syscall.FcntlFlock(f.Fd(), ofdGetLock, &lock); err != nil {
		return false, err
	}
	return lock.Type != syscall.F_UNLCK, nil
}

// IsLocked tells whether a process has the write lock of the file at path. A file that can't be
// examined counts as locked.
func IsLocked(path string) bool {
	f, err := OpenQuietly(path)
	if err != nil {
		return !os.IsNotExist(err)
	}
	defer f.Close()
	locked, err := isWriteLocked(f, 0, 0)
	return err != nil || locked
}

// OpenQuietly opens a file for reading without waiting for anybody, and follows no link.
func OpenQuietly(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// OpenLock opens or makes a lock file, which others can't read.
func OpenLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o600)
}

func createPinFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
}

func reserve(f *os.File, from, size int64) error {
	return syscall.Fallocate(int(f.Fd()), 0, from, size)
}

func isFull(err error) bool {
	errno, ok := errnoOf(err)
	return ok && (errno == syscall.ENOSPC || errno == syscall.EDQUOT)
}

func errnoOf(err error) (syscall.Errno, bool) {
	for err != nil {
		if errno, ok := err.(syscall.Errno); ok {
			return errno, true
		}
		unwrapper, ok := err.(interface{ Unwrap() error })
		if !ok {
			break
		}
		err = unwrapper.Unwrap()
	}
	return 0, false
}

func isLockedBy(err error) bool {
	errno, ok := errnoOf(err)
	return ok && (errno == syscall.EAGAIN || errno == syscall.EACCES || errno == syscall.ENOENT)
}

// DiskIsFull tells whether a file system has no room for a pin file.
func DiskIsFull(path string) bool {
	var st syscall.Statfs_t
	return syscall.Statfs(path, &st) == nil && st.Bavail*uint64(st.Bsize) < 1<<20
}

// A store into a map of these needs no new block once its blocks are reserved: tmpfs, ramfs, ext2 to
// ext4.
var keptFileSystems = []uint32{0x01021994, 0x858458f6, 0xef53}

// NFS, SMB, CIFS, SMB2, AFS, kAFS, Ceph, 9p, Lustre, GPFS, Coda.
var networkFileSystems = []uint32{0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f, 0x6b414653,
	0x00c36400, 0x01021997, 0x0bd00bd0, 0x47504653, 0x73757245}

func isOn(path string, kinds []uint32) bool {
	var st syscall.Statfs_t
	if syscall.Statfs(path, &st) != nil {
		return false
	}
	for _, kind := range kinds {
		if uint32(st.Type) == kind {
			return true
		}
	}
	return false
}

// MayWrite tells whether this process may make files in a directory.
func MayWrite(directory string) bool {
	const writeAndSearch, effective = 2 | 1, 0x200
	return syscall.Faccessat(-100, directory, writeAndSearch, effective) == nil
}

func pidNamespace() uint64 {
	id, _ := Identify("/proc/self/ns/pid")
	return id.Inode
}

func clock(number uintptr) uint64 {
	var now syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, number, uintptr(unsafe.Pointer(&now)), 0) // can't fail
	return uint64(now.Nano())
}

// Monotonic and Boottime return the time of CLOCK_MONOTONIC and CLOCK_BOOTTIME, in ns.
func Monotonic() uint64 { return clock(1) }
func Boottime() uint64  { return clock(7) }

// futexWait is not private: processes share the word. Whatever ends it, the caller looks again.
func futexWait(word *uint32, value uint32, most time.Duration) {
	const wait = 0
	timeout := syscall.NsecToTimespec(int64(most))
	_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wait, uintptr(value),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// SPDX-License-Identifier: Apache-2.0

// Package env reads LMDB's files without LMDB: meta pages, seals, trees, pins. It is the counterpart
// of store/env and store/pins; store/FORMAT.md is its specification.
//
// Slices given out point into the mapping. They are valid until their transaction ends, and a read
// from them faults if the file is cut meanwhile: the package kinf copies them under
// debug.SetPanicOnFault.
package env

import (
	"errors"
	"fmt"
)

// The kinds of errors. The package kinf has them under its own names.
var (
	ErrNoStore     = errors.New("there is no store")
	ErrFormat      = errors.New("another format")
	ErrCorrupt     = errors.New("damaged")
	ErrUntrusted   = errors.New("a copy that may be damaged")
	ErrLocked      = errors.New("in use, and not readable here")
	ErrExpired     = errors.New("the snapshot has expired")
	ErrUnsupported = errors.New("not supported here")
	ErrNoRoom      = errors.New("no room")
	ErrReplaced    = errors.New("a copy has taken the file's place")
)

// Error is a sentence and its kind.
type Error struct {
	Kind error
	Text string
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.Kind }

// Say makes an error of a kind with a sentence of its own.
func Say(kind error, format string, args ...any) error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

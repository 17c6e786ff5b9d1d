// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"kinf/internal/env"
)

// The kinds of errors, for errors.Is. An error's text is a sentence of its own.
var (
	ErrNoStore     = env.ErrNoStore     // there is no store in that directory
	ErrFormat      = env.ErrFormat      // it is of a version that this module does not know
	ErrCorrupt     = env.ErrCorrupt     // it is damaged
	ErrUntrusted   = env.ErrUntrusted   // it is a copy of a store in use, or its machine stopped
	ErrLocked      = env.ErrLocked      // it is in use, and this process may not pin what it reads
	ErrExpired     = env.ErrExpired     // what the snapshot gave may be wrong: take another one
	ErrUnsupported = env.ErrUnsupported // not Linux, or a network file system

	ErrNoFeed   = errors.New("no such feed")
	ErrNoIndex  = errors.New("no such index")
	ErrNotFound = errors.New("no such object")
	ErrNotYet   = errors.New("not listed or indexed yet")
	ErrClosed   = errors.New("closed")
	ErrSyntax   = errors.New("not understood")
	ErrLapsed   = errors.New("the history after this position is not kept: list again")
)

func say(kind error, format string, args ...any) error { return env.Say(kind, format, args...) }

const remedy = "'kinf rebuild-index' makes another index, and if the journal is damaged, another journal"

// fault is deferred by each function that reads the mapping, with debug.SetPanicOnFault(true) as its
// argument: a fault, as of a file that was cut, becomes an error.
func fault(before bool, restore func(bool) bool, err *error) {
	restore(before)
	switch r := recover().(type) {
	case nil:
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		*err = say(ErrCorrupt, "a file of the store was cut while it was read (%v)", r)
	default:
		panic(r)
	}
}

func isMissing(err error) bool { return errors.Is(err, os.ErrNotExist) }

func wrap(err error, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, err)...)
}

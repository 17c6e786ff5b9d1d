// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kinf/internal/env"
)

// When a follower's cursor is written.
const (
	saveEvents = 1000                  // after so many events,
	saveBusy   = time.Second           // after an event, while more follow,
	saveIdle   = 50 * time.Millisecond // after an event, when nothing follows,
	saveSilent = 5 * time.Second       // when only the position has moved,
	saveAgain  = time.Minute           // when nothing has: an old cursor expires
)

const (
	cursorMost  = 256 << 10 // bytes of a file
	cursorFirst = "kinf-cursor 1"
	claimTries  = 100
)

var (
	cursorName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)
	cursorText = regexp.MustCompile(`^kinf-cursor 1\njournal ([0-9a-f]{32})\nwritten (\d+)\n((?:feed \d+ \d+\n)*)end\n$`)
)

// cursor is a named cursor (FORMAT.md, Cursors) that this follower has claimed.
type cursor struct {
	name      string
	directory string
	lock      *os.File
	found     bool // there was one
	journal   [16]byte
	positions map[uint64]uint64 // by feed, as last written
	decided   time.Time         // last decision on writing it
	written   time.Time
	events    int // since then
}

// openCursor claims a cursor and reads it.
func (h *home) openCursor(name string) (c *cursor, err error) {
	if !cursorName.MatchString(name) {
		return nil, say(ErrSyntax, "cursor name '%.80s': 1 to 64 letters, digits, '.', '_', '-', not beginning with '.'", name)
	}
	c = &cursor{name: name, directory: h.real + "/cursors", decided: time.Now()}
	for try := 0; c.lock == nil && err == nil; try++ {
		if try == claimTries {
			return nil, say(ErrLocked, "cursor '%s': other followers take it and end all the time", name)
		}
		c.lock, err = c.claim()
	}
	if err == nil {
		c.removeLeftovers()
		err = c.load()
	}
	if err != nil {
		c.close()
		return nil, wrap(err, "cursor '%s'", name)
	}
	return c, nil
}

func (c *cursor) path() string { return c.directory + "/" + c.name }

// claim locks the cursor's lock file; nil: its last follower removed it meanwhile.
func (c *cursor) claim() (_ *os.File, err error) {
	path := c.directory + "/." + c.name + ".lock"
	f, err := env.OpenLock(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := c.makeDirectory(); err != nil {
			return nil, wrap(err, "the directory '%s' is missing and can't be made: the daemons make it when they are started",
				c.directory)
		}
		f, err = env.OpenLock(path)
	}
	if err != nil {
		return nil, wrap(err, "this process may not write to '%s', where positions are kept: mount that directory writable, "+
			"or become a member of the store's group", c.directory)
	}
	kept := false
	defer func() {
		if !kept {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	uid, links := env.Owner(info)
	if int(uid) != os.Geteuid() || !info.Mode().IsRegular() || links > 1 {
		return nil, say(os.ErrPermission, "'%s' belongs to user %d, or is no file: remove it, or name another cursor", path, uid)
	}
	if err := env.LockWrite(f); errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		pid, _ := readLine(path)
		return nil, say(ErrLocked, "it is in use by process %s: end that follower, or name another cursor", pid)
	} else if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if _, links = env.Owner(info); links == 0 {
		return nil, nil
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	kept = err == nil
	return f, err
}

// makeDirectory makes the directory of cursors, with the group of the store if that has one.
func (c *cursor) makeDirectory() error {
	store, err := os.Stat(filepath.Dir(c.directory))
	if err != nil {
		return err
	}
	mode := os.FileMode(0o700)
	if store.Mode()&os.ModeSetgid != 0 && store.Mode()&0o040 != 0 {
		mode = 0o770 | os.ModeSetgid | os.ModeSticky
	}
	if err := os.Mkdir(c.directory, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(c.directory, mode)
}

// removeLeftovers removes temporary files of killed followers of this cursor.
func (c *cursor) removeLeftovers() {
	files, _ := filepath.Glob(c.directory + "/." + c.name + ".*")
	for _, file := range files {
		random := strings.TrimPrefix(filepath.Base(file), "."+c.name+".")
		if _, err := hex.DecodeString(random); err == nil && len(random) == 16 {
			_ = os.Remove(file) // else the reflector does
		}
	}
}

// checkOwner refuses another user's cursor, in a directory that several may write to.
func (c *cursor) checkOwner(f *os.File) error {
	above, err := os.Stat(c.directory)
	if err != nil || above.Mode()&os.ModeSticky == 0 {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner, links := env.Owner(info)
	keeper, _ := env.Owner(above)
	self := uint32(os.Geteuid())
	trusted := (self == 0 || self == keeper) && (owner == 0 || owner == keeper)
	if owner != self && !trusted || links > 1 {
		return say(os.ErrPermission, "it belongs to user %d, or has other names: run as that user, remove it with "+
			"'kinf cursor rm', or name another cursor", owner)
	}
	return nil
}

func (c *cursor) load() error {
	f, err := env.OpenQuietly(c.path())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.checkOwner(f); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, cursorMost+1))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(text), cursorFirst+"\n") {
		return say(ErrFormat, "its first line is not '%s': remove it with 'kinf cursor rm %s'", cursorFirst, c.name)
	}
	words := cursorText.FindStringSubmatch(string(text))
	if words == nil || len(text) > cursorMost {
		return say(ErrCorrupt, "it is damaged: remove it with 'kinf cursor rm %s'", c.name)
	}
	_, _ = hex.Decode(c.journal[:], []byte(words[1])) // of that form
	c.positions = map[uint64]uint64{}
	for line := range strings.Lines(words[3]) {
		fields := strings.Fields(line)
		feed, _ := strconv.ParseUint(fields[1], 10, 32) // too many digits are of no feed
		c.positions[feed], _ = strconv.ParseUint(fields[2], 10, 64)
	}
	c.found = true
	return nil
}

// isOf tells whether the cursor has positions of exactly these feeds. Else it may miss objects.
func (c *cursor) isOf(feeds []*followed) bool {
	for _, w := range feeds {
		if _, ok := c.positions[uint64(w.id)]; !ok {
			return false
		}
	}
	return len(c.positions) == len(feeds)
}

// save writes the file, unless no position has moved for less than a minute. Positions are MOST or less.
func (c *cursor) save(journal [16]byte, feeds []*followed, most uint64) error {
	c.decided, c.events = time.Now(), 0
	moved := journal != c.journal || !c.isOf(feeds)
	for _, w := range feeds {
		moved = moved || c.positions[uint64(w.id)] != min(w.handled, most)
	}
	if !moved && time.Since(c.written) < saveAgain {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\njournal %x\nwritten %d\n", cursorFirst, journal, time.Now().UnixNano())
	positions := map[uint64]uint64{}
	for _, w := range feeds {
		positions[uint64(w.id)] = min(w.handled, most)
		fmt.Fprintf(&text, "feed %d %d\n", w.id, positions[uint64(w.id)])
	}
	text.WriteString("end\n")
	if err := c.replace(text.String()); err != nil {
		return wrap(err, "writing cursor '%s'", c.name)
	}
	c.journal, c.positions, c.written = journal, positions, c.decided
	return nil
}

// replace writes a temporary file with a name that nobody can guess, and renames it.
func (c *cursor) replace(text string) error {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	temporary := fmt.Sprintf("%s/.%s.%x", c.directory, c.name, random)
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o640), f.Sync(), f.Close()) // whatever the umask: the reflector reads it
	if err == nil {
		err = os.Rename(temporary, c.path())
	}
	if err != nil {
		_ = os.Remove(temporary) // the old cursor stays
	}
	return err
}

// close gives the claim back.
func (c *cursor) close() {
	if c.lock == nil {
		return
	}
	mine, err := c.lock.Stat()
	path := c.directory + "/." + c.name + ".lock"
	there, missing := os.Lstat(path)
	if err == nil && missing == nil && os.SameFile(mine, there) {
		_ = os.Remove(path) // while it is locked: it is no other follower's
	}
	_ = c.lock.Close()
	c.lock = nil
}

// ---- of a follower ----------------------------------------------------------------

// settle counts what Next returned as handled.
func (f *Follower) settle() {
	if f.given == 0 {
		return
	}
	e := &f.queue[f.given-1]
	f.synced = f.synced || e.Type == Synced
	if w := f.ids[e.Feed]; w != nil && !e.Initial {
		w.handled = e.Number
	}
	if f.given == len(f.queue) {
		for _, w := range f.feeds {
			w.handled = w.position
		}
	}
}

// saveAfter returns how long the cursor's writing may wait; 0: it is due.
func (f *Follower) saveAfter(idle bool) time.Duration {
	c := f.cursor
	limit := saveSilent
	switch {
	case c.events >= saveEvents:
		return 0
	case c.events > 0 && idle:
		limit = saveIdle
	case c.events > 0:
		limit = saveBusy
	}
	return max(0, limit-time.Since(c.decided))
}

// save writes the cursor if it is due. The positions are valid from Synced on.
func (f *Follower) save(idle bool) error {
	if f.cursor == nil || !f.synced || f.options.CommitByHand && f.cursor.events > 0 || f.saveAfter(idle) > 0 {
		return nil
	}
	return f.cursor.save(f.journal, f.feeds, f.most)
}

// Commit writes the cursor: all that Next returned so far is handled. ErrNotYet before Synced: there is
// no position yet to go on from.
func (f *Follower) Commit() error { return f.CommitBefore(math.MaxUint64) }

// CommitBefore writes the cursor: all that Next returned is handled, but for the event of that number
// and later ones. Handling may go on in other goroutines, and end in another order.
func (f *Follower) CommitBefore(number uint64) error {
	if f.cursor == nil {
		return say(ErrSyntax, "the follower of '%s' has no cursor", f.options.Feed)
	}
	f.settle()
	if !f.synced {
		return say(ErrNotYet, "the follower of '%s' has not given all objects yet", f.options.Feed)
	}
	f.most = number - 1
	return f.cursor.save(f.journal, f.feeds, f.most)
}

// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"kinf/internal/env"
)

// DefaultStore returns the store that is opened for the name "": $KINF_STORE, for root
// /var/lib/kinf, else $XDG_STATE_HOME/kinf or ~/.local/state/kinf.
func DefaultStore() string {
	if store := os.Getenv("KINF_STORE"); store != "" {
		return store
	}
	if os.Geteuid() == 0 {
		return "/var/lib/kinf"
	}
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "kinf")
	}
	home, _ := os.UserHomeDir() // else a relative path, which has no store
	return filepath.Join(home, ".local/state/kinf")
}

// home is the store's directory (FORMAT.md, Store directory), as it was found when a pair of
// generations was opened.
type home struct {
	path    string // as given
	real    string // without links: they may lead to another store later
	id      string
	runtime string // ""; a directory of this store
}

var (
	idLine = regexp.MustCompile(`^kinf-store (\d+) ([0-9a-f]{16})$`)
	idHead = regexp.MustCompile(`^kinf-store\s*\d`)
)

// isUsed tells whether a directory has other files of a store.
func isUsed(directory string) bool {
	_, journal := os.Stat(directory + "/journal/CURRENT")
	_, runtime := os.Stat(directory + "/runtime")
	return journal == nil || runtime == nil
}

// readLine reads the first line of a small file.
func readLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", say(ErrCorrupt, "'%s' is no file, but something else", path)
	}
	line, err := bufio.NewReaderSize(f, 4096).ReadString('\n')
	if err != nil && line == "" {
		return "", say(ErrCorrupt, "'%s' is empty", path)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

func openHome(path string) (*home, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil && isMissing(err) {
		return nil, say(ErrNoStore, "no store at '%s': start one with 'kinf run --store %s', or name another", path, path)
	}
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, wrap(err, "opening store '%s'", path)
	}
	line, err := readLine(real + "/id")
	if err != nil && isMissing(err) {
		return nil, say(ErrNoStore, "no store at '%s': start one with 'kinf run --store %s', or name another", path, path)
	}
	if errors.Is(err, os.ErrPermission) {
		return nil, wrap(err, "user %d may not read the store '%s': run as its owner, or set 'group' in its kinf.yaml and "+
			"become a member of that group", os.Geteuid(), path)
	}
	if err != nil {
		return nil, err
	}
	words := idLine.FindStringSubmatch(line)
	if words == nil && (strings.HasPrefix(line, "kinf-store 1 ") || !idHead.MatchString(line) && isUsed(real)) {
		return nil, say(ErrCorrupt, "'%s': the id file is damaged: 'kinf run' writes it again", path)
	}
	if words == nil || words[1] != "1" {
		return nil, say(ErrFormat, "'%s' is no store of this version: its id file says '%.40s'", path, line)
	}
	h := &home{path: path, real: real, id: words[2]}
	return h, h.findRuntime()
}

// holder returns the pid of a role's daemon; 0: none; negative: it has not written it yet.
func (h *home) holder(role string) int {
	lock := h.real + "/" + role + ".lock"
	if !env.IsLocked(lock) {
		return 0
	}
	line, _ := readLine(lock)
	if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
		return pid
	}
	return -1
}

// isWritten tells whether a daemon runs.
func (h *home) isWritten() bool { return h.holder("reflector") != 0 || h.holder("processor") != 0 }

// findRuntime finds the runtime directory. That of another store, of which this one is a copy, is
// not used.
func (h *home) findRuntime() error {
	path, err := readLine(h.real + "/runtime")
	if err != nil {
		return nil // none is known
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	above, err := os.Stat(h.real)
	if err != nil {
		return wrap(err, "opening store '%s'", h.path)
	}
	owner, _ := env.Owner(above)
	uid, _ := env.Owner(info)
	if uid != owner && uid != 0 && int(uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 || !info.IsDir() {
		if h.isWritten() {
			return say(ErrLocked, "'%s' belongs to another user than the store, or can be written by others: use another "+
				"--runtime-dir", path)
		}
		return nil
	}
	if (h.runtimeIsUsed(path) || h.runtimeNamesAnother(path)) && !h.runtimeIsOurs(path) {
		return nil
	}
	h.runtime = path
	return nil
}

var roles = []string{"reflector", "processor"}

func (h *home) runtimeIsUsed(path string) bool {
	for _, role := range roles {
		lock := path + "/" + role + ".lock"
		if f, err := os.Open(lock); err == nil { // members of the group can't
			f.Close()
			if env.IsLocked(lock) {
				return true
			}
		}
	}
	return false
}

func (h *home) runtimeNamesAnother(path string) bool {
	named, err := readLine(path + "/store")
	if err != nil || !strings.HasPrefix(named, "/") {
		return false
	}
	there, ok := env.Identify(named)
	ours, _ := env.Identify(h.real)
	if !ok || there == ours {
		return false
	}
	line, err := readLine(named + "/id")
	return err == nil && strings.Contains(line, h.id)
}

// runtimeIsOurs tells whether a process has a role in the store and in the runtime directory.
func (h *home) runtimeIsOurs(path string) bool {
	for _, role := range roles {
		holder := h.holder(role)
		if holder == 0 {
			continue
		}
		line, err := readLine(path + "/" + role + ".lock")
		there, notNumber := strconv.Atoi(line)
		if holder < 0 || err != nil || notNumber != nil || there == holder {
			return true
		}
	}
	return false
}

// places returns the directories where a pin file may be.
func (h *home) places() []string {
	places := []string{h.real + "/pins"}
	if h.runtime != "" {
		places = append([]string{h.runtime + "/pins"}, places...)
	}
	return places
}

// checkPins tells whether this process can pin what it reads of a generation.
func (h *home) checkPins(what, writer, directory string) error {
	writable, scanned, known := false, false, false
	for _, place := range h.places() {
		id, ok := env.Identify(place)
		if !ok || !env.MayWrite(place) {
			continue
		}
		writable = true
		scans, ok := env.Scans(directory, id)
		scanned, known = scanned || scans, known || ok
	}
	switch {
	case scanned || env.DiskIsFull(h.real): // on a full disk a process marks the page instead of a file
		return nil
	case !writable:
		return say(ErrLocked, "the store '%s' is in use, and this process may make no pin file in its runtime directory '%s': "+
			"mount that directory writable, as the daemons see it (the store itself may be read-only), join the store's "+
			"group, or read a copy of the store", h.path, h.runtime)
	case !known:
		return say(ErrLocked, "the store '%s' is in use, but its %s is not the one that its %s writes: data.mdb or pins was "+
			"removed, replaced or copied. Wait until the %s has opened or made it again", h.path, what, writer, writer)
	}
	return say(ErrLocked, "the store '%s' is in use, and its %s does not see this process's pin files in the runtime "+
		"directory '%s': mount that directory writable, as the daemons see it, or read a copy of the store",
		h.path, writer, h.runtime)
}

// ---- generations ----------------------------------------------------------

const formatOfDatabases = 6

// state is the file STATE of a generation (FORMAT.md, Generations).
type state struct {
	clean, durable bool
	boot           string
	inode, device  uint64
	format         int
	uuid           string
}

var stateText = regexp.MustCompile(`^kinf-generation 1\nstate (clean|dirty)\ndurability (disk|process)\nboot (\S{1,32})\n` +
	`inode (\d+)\nformat (\d+)\nuuid ([0-9a-f]{32})\ndevice (\d+)\n$`)

func readState(directory string) (*state, error) {
	text, err := os.ReadFile(directory + "/STATE")
	if err != nil {
		return nil, err
	}
	words := stateText.FindStringSubmatch(string(text))
	if words == nil {
		var version int
		if n, _ := fmt.Sscanf(string(text), "kinf-generation %d\n", &version); n == 1 && version > 1 {
			return nil, say(ErrFormat, "'%s' is of a newer version", directory)
		}
		return nil, say(ErrCorrupt, "'%s/STATE' is damaged", directory)
	}
	s := &state{clean: words[1] == "clean", durable: words[2] == "disk", boot: words[3], uuid: words[6]}
	s.inode, _ = strconv.ParseUint(words[4], 10, 64) // digits; too many of them match no inode
	s.format, _ = strconv.Atoi(words[5])
	s.device, _ = strconv.ParseUint(words[7], 10, 64)
	return s, nil
}

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.ReplaceAll(strings.TrimSpace(string(id)), "-", "")
}

// check refuses other formats and generations that nothing vouches for.
func (s *state) check(directory string) error {
	if s.format != formatOfDatabases {
		return say(ErrFormat, "'%s' has format %d, and this program knows format %d: start 'kinf run' of its version, which "+
			"makes it again, or read it with the version of its writer", directory, s.format, formatOfDatabases)
	}
	if s.clean {
		return nil
	}
	id, ok := env.Identify(directory + "/data.mdb")
	if !ok {
		return &os.PathError{Op: "open", Path: directory + "/data.mdb", Err: os.ErrNotExist}
	}
	boot := bootID()
	if id.Inode != s.inode || id.Device != s.device && boot == s.boot {
		return say(ErrUntrusted, "'%s' is the copy of a store whose daemons ran or were killed: 'kinf verify' says what can "+
			"still be read, and 'kinf backup' makes a copy that is whole", directory)
	}
	if !s.durable && boot != s.boot {
		return say(ErrUntrusted, "the machine stopped while '%s' was written, so it may be damaged: 'kinf run' on it lists "+
			"everything again", directory)
	}
	return nil
}

func generationNumber(name string) (uint32, bool) {
	digits, ok := strings.CutPrefix(name, "gen-")
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), ok && err == nil && n > 0 && fmt.Sprint(n) == digits
}

// current returns the number that CURRENT names in journal/ or index/.
func (h *home) current(kind string) (uint32, error) {
	line, err := readLine(h.real + "/" + kind + "/CURRENT")
	if err != nil {
		return 0, err
	}
	number, ok := generationNumber(line)
	if !ok {
		return 0, say(ErrCorrupt, "'%s/%s/CURRENT' names no generation: the daemons make it again when they are started again",
			h.path, kind)
	}
	return number, nil
}

func (h *home) generation(kind string, number uint32) string {
	return fmt.Sprintf("%s/%s/gen-%d", h.real, kind, number)
}

// findJournal returns the number of the generation of a journal, the current one first.
func (h *home) findJournal(uuid string) (uint32, error) {
	if number, err := h.current("journal"); err == nil {
		if s, err := readState(h.generation("journal", number)); err == nil && s.uuid == uuid {
			return number, nil
		}
	}
	entries, err := os.ReadDir(h.real + "/journal")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		number, ok := generationNumber(entry.Name())
		if !ok {
			continue
		}
		if s, err := readState(h.generation("journal", number)); err == nil && s.uuid == uuid {
			return number, nil
		}
	}
	return 0, os.ErrNotExist
}

// openGeneration opens one for reading; unpinned if no writer of it runs and pins are not possible.
func (h *home) openGeneration(kind, writer string, number uint32, databases []string) (e *env.Env, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	directory := h.generation(kind, number)
	s, err := readState(directory)
	if err == nil {
		err = s.check(directory)
	}
	if err != nil {
		return nil, err
	}
	pinned := h.checkPins(kind, writer, directory)
	if pinned != nil && h.isWritten() {
		return nil, pinned
	}
	options := env.Options{Databases: databases, Places: h.places(), Pinned: pinned == nil}
	e, err = env.Open(directory, options)
	if errors.Is(err, ErrCorrupt) {
		return nil, wrap(err, "%s", remedy)
	}
	return e, err
}

// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"kinf/internal/env"
)

// FeedState is what can be expected of a feed's objects.
type FeedState string

const (
	StateListing   FeedState = "listing"   // the first list runs
	StateLive      FeedState = "live"      // they are current
	StateStale     FeedState = "stale"     // they are as they were: Reason
	StateOffline   FeedState = "offline"   // the reflector does not run
	StateForbidden FeedState = "forbidden" // the API server refuses
	StateGone      FeedState = "gone"      // it has no such resource
	StateError     FeedState = "error"
)

// A FeedStatus is what `kinf status` shows of a feed.
type FeedStatus struct {
	Feed
	State  FeedState
	Reason string        // if it is not live
	Age    time.Duration // since the server said something that is shown; negative: not known
	Lag    uint64        // events in the journal that are not shown yet; 0: none of the feed's
	// Of the reflector that runs:
	Lists, Watches, Events, Bytes, Retries uint64
}

// The status page (FORMAT.md, Status pages).
const (
	pageMagic  = 0x5047534b
	pageMajor  = 3
	pageRows   = 4096
	pageState  = 1088
	pageError  = 1336
	pageFeeds  = 1824
	rowBytes   = 328
	rowWords   = 40
	rowUsed    = uint64(1) << 32
	pageBytes  = pageFeeds + pageRows*rowBytes
	heartbeats = 5 * time.Second
	setBack    = time.Second // by less, a clock made slower may seem to have been
)

// daemon is a daemon's status page, if it has one that can be read.
type daemon struct {
	name              string
	page              *env.Shared
	pid               int
	alive, responding bool
	failure           string // its last error
	state             string
}

func (h *home) daemon(role string) *daemon {
	d := &daemon{name: "kinf-" + role}
	holder := h.holder(role)
	d.alive = holder != 0
	if h.runtime == "" {
		return d
	}
	page, err := env.MapFile(h.runtime+"/stats."+role, pageBytes)
	if err != nil {
		return d
	}
	if page.Word32(4)>>16 != pageMajor || page.Word32(0) != pageMagic {
		page.Close()
		return d
	}
	d.page, d.pid = page, int(int32(page.Word32(20)))
	// The role's lock decides: a pid means nothing in another PID namespace.
	runs := startOf(d.pid) == page.Word(24)
	d.alive = holder > 0 && holder == d.pid || holder < 0 && runs
	if !d.alive && runs { // a daemon of the store that this one is a copy of
		d.close()
		return d
	}
	d.responding = d.alive && env.Monotonic()-page.Word(40) < uint64(heartbeats)
	d.failure, d.state = page.Text(pageError), page.Text(pageState)
	return d
}

func (d *daemon) close() {
	if d.page != nil {
		d.page.Close()
		d.page = nil
	}
}

// startOf returns the start time of a process, field 22 of its stat; 0: there is no such process.
func startOf(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	after := strings.LastIndexByte(string(text), ')') // of the name
	if err != nil || after < 0 {
		return 0
	}
	fields := strings.Fields(string(text[after+1:]))
	if len(fields) < 20 {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[19], 10, 64)
	return ticks
}

// explain says why the daemon is no help now.
func (d *daemon) explain() string {
	switch {
	case !d.alive && d.page != nil && d.state == "failed" && d.failure != "":
		return d.name + " does not run: " + d.failure
	case !d.alive:
		return d.name + " does not run"
	case d.page != nil:
		return fmt.Sprintf("%s (process %d) runs, but does not respond: it is stopped, or it hangs", d.name, d.pid)
	}
	return d.name + " runs, but has no status page yet, or one that can't be read"
}

// statusRow is what the reflector reports of a feed.
type statusRow struct {
	heard, lists, watches, events, bytes, retries, listed uint64
	failure                                               string
}

func (d *daemon) row(feed uint32) *statusRow {
	if d.page == nil {
		return nil
	}
	home := int(feed % pageRows) // nearly always a hit
	if row := d.rowAt(home, feed); row != nil {
		return row
	}
	for i := range min(int(d.page.Word32(16)), pageRows) {
		if row := d.rowAt(i, feed); row != nil {
			return row
		}
	}
	return nil
}

func (d *daemon) rowAt(i int, feed uint32) *statusRow {
	at := pageFeeds + i*rowBytes
	if d.page.Word(at+8) != uint64(feed)|rowUsed {
		return nil
	}
	words, ok := d.page.Words(at, rowWords)
	if !ok || le.Uint64(words) != uint64(feed)|rowUsed {
		return nil
	}
	word := func(i int) uint64 { return le.Uint64(words[8*i:]) }
	failure, _, _ := strings.Cut(string(words[80:]), "\x00")
	return &statusRow{word(2), word(3), word(4), word(5), word(6), word(7), word(8), failure}
}

// Status returns the states of the feeds of a name, in the order of their namespaces; "" is all feeds.
func (s *Store) Status(feed string) (statuses []FeedStatus, err error) {
	err = s.View(func(snapshot *Snapshot) error {
		statuses, err = snapshot.status(feed)
		return err
	})
	return statuses, err
}

func (s *Snapshot) status(name string) (statuses []FeedStatus, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	set, err := s.feedSet(name)
	if err = s.result(err); err != nil {
		return nil, err
	}
	h, err := openHome(s.store.path)
	if err != nil {
		return nil, err
	}
	v := statusView{reflector: h.daemon("reflector"), processor: h.daemon("processor")}
	defer v.reflector.close()
	defer v.processor.close()
	if page := v.reflector.page; page != nil {
		var journal [16]byte
		le.PutUint64(journal[:], page.Word(48))
		le.PutUint64(journal[8:], page.Word(56))
		v.moving = journal != [16]byte{} && journal != s.journalMeta.uuid
	}
	for _, f := range set {
		status, err := v.status(s, f)
		if err = s.result(err); err != nil {
			return nil, err
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

// statusView is what the daemons say.
type statusView struct {
	reflector, processor *daemon
	moving               bool // the reflector fills another journal than the snapshot's
}

func (v *statusView) status(s *Snapshot, f *Feed) (FeedStatus, error) {
	status := FeedStatus{Feed: *f}
	var row *statusRow
	if !v.moving {
		row = v.reflector.row(f.ID)
	}
	if row != nil {
		status.Lists, status.Watches, status.Events = row.lists, row.watches, row.events
		status.Bytes, status.Retries = row.bytes, row.retries
	}
	end, seen := s.journalMeta.nextSeq-1, f.Event
	if seen == 0 {
		seen = s.indexMeta.taken
	}
	if f.last > seen && end > seen {
		status.Lag = end - seen
	}
	status.State, status.Reason = v.state(f, row, status.Lag)
	var err error
	status.Age, err = s.age(f, status.Lag)
	return status, err
}

// age returns how old the feed's objects are: the time since the last contact or, if its outcome is not
// shown yet, since the first event that is not.
func (s *Snapshot) age(f *Feed, lag uint64) (time.Duration, error) {
	const unknown = -1
	now, then := uint64(time.Now().UnixNano()), f.contact.real
	if id := bootID(); len(id) >= 16 && fmt.Sprintf("%016x", f.contact.boot) == id[:16] {
		now, then = env.Boottime(), f.contact.boottime
	}
	if f.contact.real == 0 || then > now {
		return unknown, nil
	}
	age := time.Duration(now - then)
	if lag == 0 || f.Event == 0 {
		return age, nil
	}
	key := seqKey(f.Event + 1)
	value, found, err := get(&s.cursor, &s.journal, dbLog, key[:])
	var r record
	if err != nil || !found || !r.parse(value) || !r.hasSoundHeader() {
		return unknown, err
	}
	since := time.Since(time.Unix(0, int64(r.time)))
	if since < -setBack {
		return unknown, nil
	}
	return max(age, since), nil
}

// state is stored nowhere: it follows from the phase and the daemons' pages (reader/feeds.c).
func (v *statusView) state(f *Feed, row *statusRow, lag uint64) (FeedState, string) {
	d := v.reflector
	var state FeedState
	switch f.phase {
	case phaseListing:
		state = StateListing
	case phaseForbidden:
		state = StateForbidden
	case phaseError:
		state = StateError
	case phaseGone, phaseRemoved:
		state = StateGone
	default:
		return v.listed(f, row, lag)
	}
	why := d.failure
	if row != nil && (row.failure != "" || row.heard != 0 || row.listed != 0) {
		why = row.failure
	} else if f.phase != phaseListing && why != "" {
		why = "so it was before kinf-reflector started: " + why
	}
	if !d.responding {
		why = d.explain()
	}
	if state == StateListing && (!d.alive || d.page == nil) {
		state = StateOffline
	} else if state == StateListing && d.responding && why != "" {
		state = StateError
	}
	return state, why
}

// listed returns the state of a listed feed: it is live if the reflector runs, has heard of it since it
// started and reports no error, and the processor keeps the index.
func (v *statusView) listed(f *Feed, row *statusRow, lag uint64) (FeedState, string) {
	reflector, processor := v.reflector, v.processor
	switch {
	case !reflector.responding && reflector.alive && reflector.page != nil:
		return StateStale, reflector.explain()
	case !reflector.responding:
		return StateOffline, reflector.explain()
	case v.moving:
		return StateStale, "the cluster is another one, or in another past: a new journal is being filled"
	case row == nil && reflector.failure != "":
		return StateStale, "kinf-reflector does not watch it: " + reflector.failure
	case row == nil:
		return StateStale, "kinf-reflector does not watch it"
	case row.failure != "":
		return StateStale, row.failure
	case row.heard == 0 && reflector.failure != "":
		return StateStale, reflector.failure
	case row.heard == 0:
		return StateStale, "kinf-reflector has not heard of it since it started"
	case !processor.responding:
		return StateStale, processor.explain()
	case lag != 0 && processor.failure != "":
		return StateStale, "kinf-processor: " + processor.failure
	case f.Event == 0:
		return StateListing, ""
	}
	return StateLive, ""
}

// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"runtime/debug"
	"slices"

	"kinf/internal/env"
)

// Change returns the event of the feed's newest change; false: the snapshot does not show it so far.
// While it is the same, the feed's objects are.
func (f *Feed) Change() (event uint64, shown bool) { return f.last, f.Synced() && f.last <= f.Event }

// Changed returns the keys of a feed's objects that changed after an event, up to Change, in order. False:
// they are not known, since the log does not go back that far, or has more than most records since.
func (s *Snapshot) Changed(feed *Feed, after uint64, most int) (keys []string, known bool, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return nil, false, err
	}
	last, shown := feed.Change()
	if !shown || after > last || after < max(feed.trimmed, s.journalMeta.horizon) || last-after > uint64(most) {
		return nil, false, nil
	}
	var cursor env.Cursor
	key := seqKey(after + 1)
	found, err := cursor.Seek(&s.journal, dbLog, key[:])
	for next := after + 1; err == nil && next <= last; next++ {
		var r record
		if !found || len(cursor.Key()) != 8 || be.Uint64(cursor.Key()) != next || !r.parse(cursor.Value()) ||
			r.seq != next || !r.hasSoundHeader() {
			return nil, false, s.result(nil) // a list of all tells what is wrong
		}
		if r.feed == feed.ID && r.isChange() {
			keys = append(keys, string(r.key))
		}
		found, err = cursor.Next()
	}
	slices.Sort(keys)
	return slices.Compact(keys), err == nil, s.result(err)
}

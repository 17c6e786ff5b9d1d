// SPDX-License-Identifier: Apache-2.0

package kinf

import (
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"kinf/internal/msgpack"
)

// Phases of a feed.
const (
	phaseListing = iota
	phaseSynced
	phaseForbidden
	phaseGone
	phaseError
	phaseRemoved
)

// A Feed is what the daemons watch for one entry of kinf.yaml, in all namespaces or in one.
type Feed struct {
	ID                        uint32
	Name                      string
	Group, Version, Resource  string
	Kind, ListKind            string
	Namespace                 string // "": all
	Namespaced, MetadataOnly  bool
	LabelSelector             string
	FieldSelector             string
	Aliases, Categories, Drop []string
	Resync                    time.Duration
	Event                     uint64 // the snapshot shows its events up to this one; 0: never listed so far
	Objects                   uint64
	ResourceVersion           string    // no newer than the objects shown; "": not known
	LastContact               time.Time // of the newest stored event, bookmark or list
	phase                     uint32
	listing                   bool   // its first list is under way, or was not indexed so far
	last, trimmed             uint64 // its newest record; the log has all after this one
	contact                   moment
}

// Synced tells whether the feed was listed.
func (f *Feed) Synced() bool { return f.Event != 0 }

func (f *Feed) mayHold(key string) bool {
	if f.Namespace == "" {
		return true
	}
	namespace, _, found := strings.Cut(key, "/")
	return !found || namespace == f.Namespace
}

// definition is part 0 of a feed, and the checksum of its row.
type definition struct {
	crc  uint32
	feed Feed
}

func lines(text string, separator string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separator, r) })
}

func readDefinition(key, row []byte) (*definition, error) {
	content, err := feedContent(key, row)
	if err != nil {
		return nil, err
	}
	m, err := msgpack.Map(content, true)
	if err != nil {
		return nil, say(ErrCorrupt, "journal: the definition of a feed is damaged: %v", err)
	}
	text := func(name string) string { s, _ := m[name].(string); return s }
	is := func(name string) bool { b, _ := m[name].(bool); return b }
	resync, _ := m["resync"].(int64)
	return &definition{le.Uint32(row[len(row)-4:]), Feed{ID: be.Uint32(key), Name: text("name"), Group: text("group"),
		Version: text("version"), Resource: text("resource"), Kind: text("kind"), ListKind: text("listKind"),
		Namespace: text("namespace"), Namespaced: is("namespaced"), MetadataOnly: is("metadataOnly"),
		LabelSelector: text("labelSelector"), FieldSelector: text("fieldSelector"), Aliases: lines(text("aliases"), " "),
		Categories: lines(text("categories"), " "), Drop: lines(text("drop"), "\n"), Resync: time.Duration(resync)}}, nil
}

// define returns the definition in a row, parsed once.
func (s *Store) define(journal [16]byte, key, row []byte) (*definition, error) {
	if len(row) < 4 || len(key) != 5 {
		return nil, badRow("feed")
	}
	id := be.Uint32(key)
	s.mu.Lock()
	if s.journal != journal {
		s.journal = journal
		clear(s.definitions)
	}
	known := s.definitions[id]
	s.mu.Unlock()
	if known != nil && known.crc == le.Uint32(row[len(row)-4:]) {
		return known, nil
	}
	d, err := readDefinition(key, row)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.journal == journal {
		s.definitions[id] = d
	}
	s.mu.Unlock()
	return d, nil
}

// knownFeed is a feed as a snapshot read it last. Of its rows only what has changed is parsed again.
type knownFeed struct {
	feed       *Feed
	checkpoint *checkpoint // nil: it has none
	crcs       [2]uint32   // of the definition and of the checkpoint
	shown      bool        // it has a checkpoint, and was not removed
}

func rowCRC(row []byte) uint32 {
	if len(row) < 4 {
		return 0
	}
	return le.Uint32(row[len(row)-4:])
}

// collectFeeds reads the feeds of the snapshot. It tells whether names may stand for others than before.
func (s *Snapshot) collectFeeds() (changed bool, err error) {
	before := s.known
	s.known = before[:0]
	var k *knownFeed
	found, err := s.cursor.Seek(&s.journal, dbFeed, nil)
	for err == nil && found {
		key, row := s.cursor.Key(), s.cursor.Value()
		if len(key) != 5 {
			return true, badRow("feed")
		}
		n := len(s.known)
		switch id := be.Uint32(key); {
		case key[4] == 0:
			if n >= len(before) || before[n].feed.ID != id || before[n].crcs[0] != rowCRC(row) {
				d, err := s.store.define(s.journalMeta.uuid, key, row)
				if err != nil {
					return true, err
				}
				f := d.feed
				before = append(before[:n], knownFeed{feed: &f, crcs: [2]uint32{d.crc}})
				changed = true
			}
			s.known = before[:n+1]
			k = &s.known[n]
		case key[4] == 1 && (k == nil || k.feed.ID != id):
			return true, badRow("feed")
		case key[4] == 1 && (k.checkpoint == nil || k.crcs[1] != rowCRC(row)):
			c, err := readCheckpoint(key, row)
			if err != nil {
				return true, err
			}
			k.checkpoint, k.crcs[1] = &c, rowCRC(row)
		}
		found, err = s.cursor.Next()
	}
	changed = changed || len(s.known) != len(before)
	for i := range s.known {
		changed = s.fillFeed(&s.known[i]) || changed
	}
	return changed, err
}

// fillFeed adds what the index and the checkpoint say of a feed. It tells whether that may change the
// feeds that a name stands for.
func (s *Snapshot) fillFeed(k *knownFeed) (different bool) {
	f, c := k.feed, k.checkpoint
	if c == nil {
		return false
	}
	row := s.feeds.of(f.ID)
	shown, synced := c.phase != phaseRemoved, f.Synced()
	f.Event = row.visible(s.indexMeta.taken)
	f.Objects = row.objects
	f.phase, f.last, f.trimmed, f.contact = c.phase, c.last, c.trimmed, c.contact
	f.listing = !f.Synced() && (c.phase == phaseListing || c.firstList != 0)
	if c.contact.real != 0 {
		f.LastContact = time.Unix(0, int64(c.contact.real))
	}
	// Bookmarks move the checkpoint's version without a record. It counts while the journal has no
	// newer change of the feed.
	changed := c.last
	if c.listBegin != 0 {
		changed = c.listBegin - 1
	}
	if f.Event != 0 {
		f.ResourceVersion = row.rv
		if c.rv != "" && changed <= f.Event {
			f.ResourceVersion = c.rv
		}
	}
	different = k.shown != shown || f.Synced() != synced
	k.shown = shown
	return different
}

// compareNamespaces compares `namespace + "/"`: the order of the object keys.
func compareNamespaces(a, b string) int { return strings.Compare(a+"/", b+"/") }

// sortFeeds sorts by name and namespace; of equal ones listed feeds come first, then newer ones.
func sortFeeds(feeds []*Feed) {
	slices.SortFunc(feeds, func(a, b *Feed) int {
		r := strings.Compare(a.Name, b.Name)
		if r == 0 {
			r = compareNamespaces(a.Namespace, b.Namespace)
		}
		if r == 0 && a.Synced() != b.Synced() {
			r = 1
			if a.Synced() {
				r = -1
			}
		}
		if r == 0 {
			r = int(int64(b.ID) - int64(a.ID))
		}
		return r
	})
}

// feedSet returns the feeds that a name stands for: one for each namespace. "" is all feeds.
func (s *Snapshot) feedSet(name string) ([]*Feed, error) {
	if id := [2]uint64{s.index.ID(), s.journal.ID()}; s.sets == nil || s.setsID != id {
		if err := s.renewSets(); err != nil {
			s.known, s.sets = nil, nil
			return nil, err
		}
		s.setsID = id
	}
	if set, ok := s.sets[name]; ok {
		return set, nil
	}
	var feeds []*Feed
	for i := range s.known {
		if s.known[i].shown {
			feeds = append(feeds, s.known[i].feed)
		}
	}
	sortFeeds(feeds)
	if name != "" {
		var err error
		if feeds, err = selectFeeds(feeds, name, s.order); err != nil {
			return nil, err
		}
	}
	s.sets[name] = feeds
	return feeds, nil
}

// renewSets reads the feeds of the snapshot. What names stand for is kept, unless it may have changed.
func (s *Snapshot) renewSets() error {
	feedsChanged, err := s.collectFeeds()
	if err != nil {
		return err
	}
	orderChanged, err := s.readOrder()
	if feedsChanged || orderChanged || s.sets == nil {
		s.sets = map[string][]*Feed{}
	}
	return err
}

var orderKey = []byte("order")

// readOrder reads the row `order`, if it has changed; a damaged one counts as none.
func (s *Snapshot) readOrder() (changed bool, err error) {
	row, _, err := get(&s.cursor, &s.journal, dbMeta, orderKey)
	sum := rowCRC(row)
	if err != nil || sum == s.orderCRC {
		return false, err
	}
	s.order, s.orderCRC = nil, sum
	if n := len(row) - 4; n > 0 && crc(orderKey, row[:n]) == sum {
		s.order = strings.Split(string(row[:n]), "\n")
	}
	return true, nil
}

// Feeds returns the feeds that a name stands for, in the order of their namespaces; "" is all feeds.
// ErrNoFeed.
func (s *Snapshot) Feeds(name string) (feeds []Feed, err error) {
	defer fault(debug.SetPanicOnFault(true), debug.SetPanicOnFault, &err)
	if err := s.mustHold(); err != nil {
		return nil, err
	}
	set, err := s.feedSet(name)
	if err = s.result(err); err != nil {
		return nil, err
	}
	for _, f := range set {
		feeds = append(feeds, *f)
	}
	return feeds, nil
}

// ---- names ----------------------------------------------------------------------

// nextSuffix ends the name of a feed that is to replace the one with the rest of the name.
const nextSuffix = "~next"

const notNamed = 100

// fit returns how well a name fits a feed, as kubectl reads it (RESOURCE[.VERSION][.GROUP] with the
// plural, kind, singular or short name); smaller is better.
func (f *Feed) fit(name string) int {
	word, rest, qualified := strings.Cut(name, ".")
	naming := 0
	switch {
	case strings.EqualFold(word, f.Resource) || strings.EqualFold(word, f.Kind):
	case slices.ContainsFunc(f.Aliases, func(alias string) bool { return strings.EqualFold(word, alias) }):
		naming = 1
	default:
		return notNamed
	}
	if !qualified {
		return naming
	}
	version, group, further := strings.Cut(rest, ".")
	isVersion := strings.EqualFold(version, f.Version)
	switch {
	case rest == "" || strings.EqualFold(rest, f.Group) || isVersion && further && strings.EqualFold(group, f.Group):
		return naming
	case isVersion && group == "":
		return 2 + naming
	case len(f.Group) > len(rest) && strings.EqualFold(f.Group[:len(rest)], rest):
		return 4 + naming
	}
	return notNamed
}

func (f *Feed) line(order []string) int {
	groupVersion := f.Version
	if f.Group != "" {
		groupVersion = f.Group + "/" + f.Version
	}
	if i := slices.Index(order, groupVersion); i >= 0 {
		return i
	}
	return len(order)
}

// The API server's own groups (common/value/custom.c).
var builtinGroups = []string{"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io"}

// compare orders feeds that share a name: the better fit, then the order of discovery.
func (f *Feed) compare(g *Feed, name string, order []string) int {
	if r := f.fit(name) - g.fit(name); r != 0 {
		return r
	}
	if r := f.line(order) - g.line(order); r != 0 {
		return r
	}
	if own, other := slices.Contains(builtinGroups, f.Group), slices.Contains(builtinGroups, g.Group); own != other && f.Group != "" && g.Group != "" {
		if own {
			return -1
		}
		return 1
	}
	return strings.Compare(f.Group, g.Group)
}

// selectFeeds keeps the feeds of a name: those of the configuration's entry, else of kubectl's choice of
// resource; the first of each namespace.
func selectFeeds(feeds []*Feed, name string, order []string) ([]*Feed, error) {
	configured := slices.ContainsFunc(feeds, func(f *Feed) bool { return f.Name == name })
	var called []*Feed
	for _, f := range feeds {
		if configured && f.Name != name {
			continue
		}
		if !configured {
			if f.fit(name) == notNamed || strings.HasSuffix(f.Name, nextSuffix) {
				continue
			}
			if len(called) > 0 {
				before := f.compare(called[0], name, order)
				if before > 0 {
					continue
				}
				if before < 0 {
					called = called[:0]
				}
			}
		}
		called = append(called, f)
	}
	if len(called) == 0 {
		return nil, say(ErrNoFeed, "no feed '%s': add '- resource: %s' to the feeds in kinf.yaml; if it is there, 'kinf status' "+
			"says why it has no feed; there are: %s", name, name, feedNames(feeds))
	}
	if called[0].Name != called[len(called)-1].Name {
		return nil, say(ErrNoFeed, "several feeds watch the resource '%s': name one of %s", name, feedNames(called))
	}
	return slices.CompactFunc(called, func(a, b *Feed) bool { return a.Namespace == b.Namespace }), nil
}

func feedNames(feeds []*Feed) string {
	var names []string
	for _, f := range feeds {
		names = append(names, "'"+f.Name+"'")
	}
	return strings.Join(slices.Compact(names), ", ")
}

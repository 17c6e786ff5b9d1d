// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"container/list"
	"maps"
	"sync"
	"time"

	"kinf"
)

// An ObjectCache keeps decoded objects for the reads and handlers of informers, those that were used
// last, and lists that are asked for again and again. They are shared, so nobody may change them, as
// those of client-go's informers.
type ObjectCache struct {
	mu      sync.Mutex
	limit   int
	bytes   int // of the records of all
	objects map[objectVersion]*list.Element
	used    list.List // of *keptObject, the last used one first
	// Versions that were read once, if reads are copies: those since the last change of the two, and before.
	once, before map[objectVersion]struct{}
	onceBytes    int // of the first
	lists        map[listName]*keptList
	swept        time.Time // when lists were looked through for unused ones
}

// A list is kept until nobody has asked for it for so long.
const listUnused = 5 * time.Minute

// objectVersion names a version of an object: it never changes.
type objectVersion struct {
	informer *Informer
	at       position
}

// listName names the objects that an informer has in a namespace; "": in all.
type listName struct {
	informer  *Informer
	namespace string
}

type keptObject struct {
	objectVersion
	stored *kinf.Object
	object any
}

// NewObjectCache makes a cache of objects whose records have at most so many bytes. Their memory is some
// three times as much. Lists are not counted. A nil cache keeps none.
func NewObjectCache(limit int) *ObjectCache {
	if limit <= 0 {
		return nil
	}
	return &ObjectCache{limit: limit, objects: map[objectVersion]*list.Element{}, lists: map[listName]*keptList{},
		once: map[objectVersion]struct{}{}, before: map[objectVersion]struct{}{}}
}

// version returns a version of an object: what the store has, and decoded; nil: it is not kept.
func (c *ObjectCache) version(i *Informer, at position) (stored *kinf.Object, object any) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.objects[objectVersion{i, at}]
	if e == nil {
		return nil, nil
	}
	c.used.MoveToFront(e)
	kept := e.Value.(*keptObject)
	return kept.stored, kept.object
}

// stored returns what the store has of a version; nil: it is not kept.
func (c *ObjectCache) stored(i *Informer, at position) *kinf.Object {
	stored, _ := c.version(i, at)
	return stored
}

// get returns the decoded version; nil: it is not kept.
func (c *ObjectCache) get(i *Informer, at position) any {
	_, object := c.version(i, at)
	return object
}

// isRead notes that a version is read, and tells whether it was before. Others that were read since then
// forget it if they fill the cache: it would not stay there until it is read again, and to keep one for
// reads that are copies is to decode it and copy it.
func (c *ObjectCache) isRead(i *Informer, at position, size int) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := objectVersion{i, at}
	_, lately := c.once[v]
	_, before := c.before[v]
	if lately || before {
		return true
	}
	if c.onceBytes >= c.limit/2 {
		c.once, c.before, c.onceBytes = c.before, c.once, 0
		clear(c.once)
	}
	c.once[v] = struct{}{}
	c.onceBytes += size
	return false
}

// put keeps a version, and returns the one that is kept.
func (c *ObjectCache) put(i *Informer, at position, stored *kinf.Object, object any) any {
	if c == nil {
		return object
	}
	kept := &keptObject{objectVersion{i, at}, stored, object}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.objects[kept.objectVersion]; e != nil { // another goroutine was faster
		return e.Value.(*keptObject).object
	}
	if kept.size() > c.limit {
		return object
	}
	c.objects[kept.objectVersion] = c.used.PushFront(kept)
	for c.bytes += kept.size(); c.bytes > c.limit; {
		c.drop(c.used.Back())
	}
	return object
}

// remove forgets a version that is not the newest one any more.
func (c *ObjectCache) remove(i *Informer, at position) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.objects[objectVersion{i, at}]; e != nil {
		c.drop(e)
	}
}

// forget forgets all of an informer.
func (c *ObjectCache) forget(i *Informer) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for v, e := range c.objects {
		if v.informer == i {
			c.drop(e)
		}
	}
	maps.DeleteFunc(c.lists, func(name listName, _ *keptList) bool { return name.informer == i })
	maps.DeleteFunc(c.once, func(v objectVersion, _ struct{}) bool { return v.informer == i })
	maps.DeleteFunc(c.before, func(v objectVersion, _ struct{}) bool { return v.informer == i })
}

// drop forgets one. The caller holds c.mu.
func (c *ObjectCache) drop(e *list.Element) {
	kept := c.used.Remove(e).(*keptObject)
	c.bytes -= kept.size()
	delete(c.objects, kept.objectVersion)
}

func (k *keptObject) size() int { return len(k.stored.Raw()) }

// listOf returns a list, which has no items if nobody has asked for it lately. It may have any size: a
// program that lists all objects for each one that it handles would decode them all each time. Most
// programs list once.
func (c *ObjectCache) listOf(name listName) *keptList {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.swept) >= listUnused {
		c.swept = now
		maps.DeleteFunc(c.lists, func(_ listName, l *keptList) bool { return now.Sub(l.used) >= listUnused })
	}
	l := c.lists[name]
	if l == nil {
		l = &keptList{}
		c.lists[name] = l
	}
	l.used = now
	return l
}

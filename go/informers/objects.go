// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"container/list"
	"sync"

	"kinf"
)

// An ObjectCache keeps decoded objects for the reads and handlers of informers, those that were used
// last. They are shared, so nobody may change them, as those of client-go's informers.
type ObjectCache struct {
	mu      sync.Mutex
	limit   int
	bytes   int // of the records of all
	objects map[objectVersion]*list.Element
	used    list.List // of *keptObject, the last used one first
	// Versions that were read once, if reads are copies: those since the last change of the two, and before.
	once, before map[objectVersion]struct{}
}

// onceMost is the size of each of the two.
const onceMost = 4096

// objectVersion names a version of an object: it never changes.
type objectVersion struct {
	informer *Informer
	at       position
}

type keptObject struct {
	objectVersion
	stored *kinf.Object
	object any
}

// NewObjectCache makes a cache of objects whose records have at most so many bytes. Their memory is some
// three times as much; a nil cache keeps none.
func NewObjectCache(limit int) *ObjectCache {
	if limit <= 0 {
		return nil
	}
	return &ObjectCache{limit: limit, objects: map[objectVersion]*list.Element{}}
}

// find returns a version that is kept, and counts it as used; nil: it is not.
func (c *ObjectCache) find(i *Informer, at position) *keptObject {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.objects[objectVersion{i, at}]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*keptObject)
}

// stored returns what the store has of a version; nil: it is not kept.
func (c *ObjectCache) stored(i *Informer, at position) *kinf.Object {
	if kept := c.find(i, at); kept != nil {
		return kept.stored
	}
	return nil
}

// get returns the decoded version; nil: it is not kept.
func (c *ObjectCache) get(i *Informer, at position) any {
	if kept := c.find(i, at); kept != nil {
		return kept.object
	}
	return nil
}

// isRead notes that a version is read, and tells whether it was before.
func (c *ObjectCache) isRead(i *Informer, at position) bool {
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
	if c.once == nil || len(c.once) >= onceMost {
		c.once, c.before = map[objectVersion]struct{}{}, c.once
	}
	c.once[v] = struct{}{}
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

// drop forgets one. The caller holds c.mu.
func (c *ObjectCache) drop(e *list.Element) {
	kept := c.used.Remove(e).(*keptObject)
	c.bytes -= kept.size()
	delete(c.objects, kept.objectVersion)
}

func (k *keptObject) size() int { return len(k.stored.Raw()) }

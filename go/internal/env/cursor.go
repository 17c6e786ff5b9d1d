// SPDX-License-Identifier: Apache-2.0

package env

import "bytes"

// A Cursor walks a database. Each page's number and kind are checked before it is used: a tree of n
// levels has n - 1 branches and then a leaf on each way.
type Cursor struct {
	txn   *Txn
	depth int
	steps [depthMost]step
	key   []byte
	value []byte
}

type step struct {
	page   []byte
	row, n int
}

// Key and Value are those of the row. They point into the mapping.
func (c *Cursor) Key() []byte   { return c.key }
func (c *Cursor) Value() []byte { return c.value }

// floor finds the last row of page not above key, else the first one: in a branch it counts as less
// than all.
func (c *Cursor) floor(page []byte, rows int, key []byte) (int, bool) {
	low, high := 0, rows
	for high-low > 1 {
		middle := low + (high-low)/2
		node, ok := pageRow(page, middle)
		if !ok {
			return 0, false
		}
		if bytes.Compare(key, nodeKey(page, node)) < 0 {
			high = middle
		} else {
			low = middle
		}
	}
	return low, true
}

func (c *Cursor) enter(level int, number uint64) error {
	kind := kindBranch
	if level+1 == c.depth {
		kind = kindLeaf
	}
	page, err := c.txn.pageAt(number, kind)
	if err != nil {
		return err
	}
	n := pageRows(page)
	if n == 0 {
		return c.txn.damaged(number, "has no rows")
	}
	c.steps[level] = step{page, 0, n}
	return nil
}

func (c *Cursor) outside(level int) error {
	return c.txn.damaged(le64(c.steps[level].page, 0), "has a row outside of it")
}

// down enters the page below the row on a level.
func (c *Cursor) down(level int) error {
	s := &c.steps[level]
	node, ok := pageRow(s.page, s.row)
	if !ok {
		return c.outside(level)
	}
	return c.enter(level+1, nodePage(s.page, node))
}

// Seek goes to the first row not below key. False: there is none.
func (c *Cursor) Seek(t *Txn, database int, key []byte) (bool, error) {
	found := t.trees[database]
	c.txn, c.depth = t, found.depth
	if c.depth == 0 {
		return false, nil
	}
	if err := c.enter(0, found.root); err != nil {
		return false, err
	}
	for level := 0; ; level++ {
		s := &c.steps[level]
		row, ok := c.floor(s.page, s.n, key)
		if !ok {
			return false, c.outside(level)
		}
		s.row = row
		if level+1 == c.depth {
			break
		}
		if err := c.down(level); err != nil {
			return false, err
		}
	}
	if err := c.take(); err != nil {
		return false, err
	}
	if bytes.Compare(c.key, key) < 0 {
		return c.move(false)
	}
	return true, nil
}

// Next and Previous go to the row beside. False: there is none, and the row stays.
func (c *Cursor) Next() (bool, error)     { return c.move(false) }
func (c *Cursor) Previous() (bool, error) { return c.move(true) }

// Last goes to the last row.
func (c *Cursor) Last(t *Txn, database int) (bool, error) {
	found := t.trees[database]
	c.txn, c.depth = t, found.depth
	if c.depth == 0 {
		return false, nil
	}
	if err := c.enter(0, found.root); err != nil {
		return false, err
	}
	return true, c.finish(0, true)
}

// finish goes from the page on a level to the first or last row below it.
func (c *Cursor) finish(level int, last bool) error {
	for ; ; level++ {
		s := &c.steps[level]
		s.row = 0
		if last {
			s.row = s.n - 1
		}
		if level+1 == c.depth {
			return c.take()
		}
		if err := c.down(level); err != nil {
			return err
		}
	}
}

func (c *Cursor) move(back bool) (bool, error) {
	level := c.depth - 1
	for ; level >= 0; level-- {
		s := &c.steps[level]
		if back && s.row > 0 || !back && s.row+1 < s.n {
			break
		}
	}
	if level < 0 {
		return false, nil
	}
	if back {
		c.steps[level].row--
	} else {
		c.steps[level].row++
	}
	if level+1 == c.depth {
		return true, c.take()
	}
	if err := c.down(level); err != nil {
		return false, err
	}
	return true, c.finish(level+1, back)
}

// take reads the row in the leaf.
func (c *Cursor) take() error {
	level := c.depth - 1
	page := c.steps[level].page
	node, ok := pageRow(page, c.steps[level].row)
	if !ok {
		return c.outside(level)
	}
	c.key = nodeKey(page, node)
	at, size := node+nodeHeader+len(c.key), int(le32(page, node))
	if le16(page, node+nodeFlags)&nodeLarge == 0 {
		if size > len(page)-at {
			return c.outside(level)
		}
		c.value = page[at : at+size : at+size]
		return nil
	}
	if at+8 > len(page) {
		return c.outside(level)
	}
	t := c.txn
	first := le64(page, at)
	if _, err := t.pageAt(first, kindLarge); err != nil {
		return err
	}
	c.value = t.At(first*uint64(t.env.pageSize)+pageHeader, size)
	if c.value == nil {
		return t.damaged(first, "has a value that ends after the state")
	}
	return nil
}

// LeafIsWhole tells whether the rows of the row's leaf fill it: none is hidden.
func (c *Cursor) LeafIsWhole() bool { return leafIsWhole(c.steps[c.depth-1].page) }

// Place returns the offset of the row's value in the file, if it is in overflow pages.
func (c *Cursor) Place() (uint64, bool) {
	level := c.depth - 1
	page := c.steps[level].page
	node, ok := pageRow(page, c.steps[level].row)
	if !ok || le16(page, node+nodeFlags)&nodeLarge == 0 {
		return 0, false
	}
	return le64(page, node+nodeHeader+len(c.key))*uint64(c.txn.env.pageSize) + pageHeader, true
}

// Leaf identifies the row's leaf.
func (c *Cursor) Leaf() *byte { return &c.steps[c.depth-1].page[0] }

// SPDX-License-Identifier: Apache-2.0

package env

import "bytes"

// A check of a state's trees for foreign pages. A replaced page stays in the file, as it was, until it
// is used again. One changed byte in a page's number leads down to such a page, with rows of an older
// state. But then the page is in the list of free pages, or two trees have it. So the numbers of all
// pages are compared with the list and with each other, and counted (store/env/env_tree.c).
type treeCheck struct {
	txn              *Txn
	inFile           uint64
	seen             []uint64
	branches, leaves uint64
}

func (c *treeCheck) mark(page uint64, how string) error {
	if page < 2 || page >= c.txn.pages {
		return c.txn.damaged(page, "does not belong to the newest state")
	}
	if c.seen[page/64]&(1<<(page%64)) != 0 {
		return c.txn.damaged(page, how)
	}
	c.seen[page/64] |= 1 << (page % 64)
	return nil
}

func (c *treeCheck) markPart(page uint64, how string) error {
	if err := c.mark(page, how); err != nil {
		return err
	}
	if page >= c.inFile {
		return c.txn.damaged(page, "is not in the file")
	}
	return nil
}

// read reads the beginning of a page.
func (c *treeCheck) read(number uint64, kind int, bytes []byte) error {
	size := c.txn.env.pageSize
	if n, _ := c.txn.env.file.ReadAt(bytes, int64(number)*int64(size)); n < len(bytes) {
		return c.txn.damaged(number, "is not in the file")
	}
	if le64(bytes, 0) != number || pageKind(bytes) != kind || le16(bytes, pageLower) > size {
		return c.txn.damaged(number, "is not of the kind that was expected there")
	}
	return nil
}

// row returns the offset of row i, behind the offsets in the page.
func (c *treeCheck) row(page []byte, i int) (int, error) {
	node, ok := pageRow(page, i)
	if !ok || node < le16(page, pageLower) {
		return 0, c.txn.damaged(le64(page, 0), "has a row outside of it")
	}
	return node, nil
}

const inFreeList = "is in the list of free pages, and part of it"

func (c *treeCheck) walkFree(number uint64, depth int) error {
	if err := c.markPart(number, inFreeList); err != nil {
		return err
	}
	page, kind := make([]byte, c.txn.env.pageSize), kindBranch
	if depth == 1 {
		kind = kindLeaf
	}
	if err := c.read(number, kind, page); err != nil {
		return err
	}
	for i := range pageRows(page) {
		node, err := c.row(page, i)
		if err == nil && depth > 1 {
			err = c.walkFree(nodePage(page, node), depth-1)
		} else if err == nil {
			err = c.markFreed(page, node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// markFreed marks the pages that a row of the list names, and the row's own ones.
func (c *treeCheck) markFreed(page []byte, node int) error {
	size, pageSize := int(le32(page, node)), c.txn.env.pageSize
	at := node + nodeHeader + le16(page, node+nodeKeySize)
	large := le16(page, node+nodeFlags)&nodeLarge != 0
	bad := c.txn.damaged(le64(page, 0), "has a row of the list of free pages that can't be")
	if large && at+8 > len(page) || !large && at+size > len(page) || size < 8 {
		return bad
	}
	var value []byte
	if large {
		first := le64(page, at)
		for i := 0; i <= (pageHeader+size-1)/pageSize; i++ {
			if err := c.markPart(first+uint64(i), inFreeList); err != nil {
				return err
			}
		}
		value = make([]byte, size)
		if n, _ := c.txn.env.file.ReadAt(value, int64(first)*int64(pageSize)+pageHeader); n < size {
			return bad
		}
	} else {
		value = page[at : at+size]
	}
	n := le64(value, 0)
	if n > uint64(size/8-1) {
		return bad
	}
	for i := range n {
		if err := c.mark(le64(value, int(8+8*i)), "is free, and also free or in use elsewhere"); err != nil {
			return err
		}
	}
	return nil
}

// part is a part of a tree: its keys are not below low and, unless high is empty, below high.
type part struct {
	page      uint64
	depth     int
	first     bool // below its branch
	low, high []byte
}

func (c *treeCheck) walk(p part) error {
	if err := c.markPart(p.page, "is in use, and also free or in use elsewhere"); err != nil {
		return err
	}
	if p.depth == 1 {
		c.leaves++
		if !p.first {
			return nil
		}
		return c.read(p.page, kindLeaf, make([]byte, pageHeader))
	}
	c.branches++
	page := make([]byte, c.txn.env.pageSize)
	if err := c.read(p.page, kindBranch, page); err != nil {
		return err
	}
	rows, below := pageRows(page), part{depth: p.depth - 1, low: p.low}
	for i := range rows {
		node, err := c.row(page, i)
		if err != nil {
			return err
		}
		below.page, below.first, below.high = nodePage(page, node), i == 0, p.high
		if i+1 < rows {
			next, err := c.row(page, i+1)
			if err != nil {
				return err
			}
			below.high = nodeKey(page, next)
		}
		if len(below.high) > 0 && bytes.Compare(below.low, below.high) >= 0 {
			return c.txn.damaged(p.page, "has keys that are not in order")
		}
		if err := c.walk(below); err != nil {
			return err
		}
		below.low = below.high
	}
	return nil
}

// checkTrees checks the pages of the transaction's state. A reader reads the branches for it, and the
// first leaf below each.
func (t *Txn) checkTrees(inFile uint64) error {
	c := treeCheck{txn: t, inFile: inFile, seen: make([]uint64, t.pages/64+1)}
	if t.free.depth > depthMost {
		return t.damaged(t.id&1, "has a list of free pages that can't be")
	}
	if t.free.depth > 0 {
		if err := c.walkFree(t.free.root, t.free.depth); err != nil {
			if now := (Txn{env: t.env}); t.isOld(&now) {
				return nil // a writer runs, and checked the file at its opening
			}
			return err
		}
	}
	if err := c.mark(t.root, "is the table of databases, and also free"); err != nil {
		return err
	}
	table, err := t.pageAt(t.root, kindLeaf)
	if err != nil {
		return err
	}
	for i, name := range t.env.names {
		c.branches, c.leaves = 0, 0
		if t.trees[i].depth > 0 {
			if err := c.walk(part{page: t.trees[i].root, depth: t.trees[i].depth, first: true}); err != nil {
				return err
			}
		}
		for r := range pageRows(table) {
			node, ok := pageRow(table, r)
			if !ok || string(nodeKey(table, node)) != name {
				continue
			}
			value := node + nodeHeader + len(name)
			if c.branches != le64(table, value+databaseBranches) || c.leaves != le64(table, value+databaseLeaves) {
				return t.damaged(t.root, "counts other pages of a database than there are")
			}
		}
	}
	return nil
}

// isOld tells whether there is a newer state.
func (t *Txn) isOld(now *Txn) bool {
	now.readState()
	return now.id != t.id
}

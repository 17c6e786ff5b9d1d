// SPDX-License-Identifier: Apache-2.0

package env

import "encoding/binary"

// LMDB's pages (FORMAT.md, LMDB's file).
const (
	pageHeader  = 16
	pageFlags   = 10
	pageLower   = 12
	pageUpper   = 14
	kindBranch  = 0x01
	kindLeaf    = 0x02
	kindLarge   = 0x04
	kindsMask   = 0x6f
	nodeHeader  = 8
	nodeFlags   = 4
	nodeKeySize = 6
	nodeLarge   = 0x01
	nodeTable   = 0x02

	databaseBytes    = 48
	databaseFlags    = 4
	databaseDepth    = 6
	databaseBranches = 8
	databaseLeaves   = 16
	databaseRoot     = 40

	depthMost = 32
)

func le16(b []byte, at int) int    { return int(binary.LittleEndian.Uint16(b[at:])) }
func le32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
func le64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

func pageKind(page []byte) int { return le16(page, pageFlags) & kindsMask }

// pageRows returns the page's own number of rows, or 0.
func pageRows(page []byte) int {
	end := le16(page, pageLower)
	if end < pageHeader {
		return 0
	}
	return (end - pageHeader) / 2
}

// pageRow returns the offset of row i; ok is false if the row's header or key is not in the page.
func pageRow(page []byte, i int) (node int, ok bool) {
	at := pageHeader + 2*i
	if at+2 > len(page) {
		return 0, false
	}
	node = le16(page, at)
	return node, node+nodeHeader <= len(page) && node+nodeHeader+le16(page, node+nodeKeySize) <= len(page)
}

func nodeKey(page []byte, node int) []byte {
	key := node + nodeHeader
	return page[key : key+le16(page, node+nodeKeySize)]
}

// nodePage returns the page number of a branch's row.
func nodePage(page []byte, node int) uint64 {
	return uint64(le32(page, node)) | uint64(le16(page, node+4))<<32
}

// leafIsWhole tells whether the rows of the leaf fill it: one behind the other up to its end. A changed
// number or offset would hide rows.
func leafIsWhole(page []byte) bool {
	size := len(page)
	lower, upper := le16(page, pageLower), le16(page, pageUpper)
	if pageKind(page) != kindLeaf || lower < pageHeader || lower > upper || upper > size || lower%2 != 0 {
		return false
	}
	filled, squares := 0, 0 // the second changes with an offset that leads to another row
	for at := pageHeader; at < lower; at += 2 {
		node := le16(page, at)
		if node < upper || node+nodeHeader > size {
			return false
		}
		value := int(le32(page, node))
		if le16(page, node+nodeFlags)&nodeLarge != 0 {
			value = 8
		}
		bytes := nodeHeader + le16(page, node+nodeKeySize) + value
		if bytes > size-node {
			return false
		}
		bytes = (bytes + 1) &^ 1
		filled += bytes
		squares += bytes * (2*node + bytes)
	}
	return filled == size-upper && squares == size*size-upper*upper
}

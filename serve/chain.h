/* SPDX-License-Identifier: Apache-2.0 */
/* Lists whose items have `next`, and `at`: where the pointer to the item is. */
#ifndef SERVE_CHAIN_H
#define SERVE_CHAIN_H

/* Adds ITEM at the beginning of the list *FIRST. */
#define CHAIN_ADD(first, item) \
	do { \
		(item)->at = (first); \
		(item)->next = *(first); \
		if ((item)->next) \
			(item)->next->at = &(item)->next; \
		*(first) = (item); \
	} while (0)

#define CHAIN_REMOVE(item) \
	do { \
		*(item)->at = (item)->next; \
		if ((item)->next) \
			(item)->next->at = (item)->at; \
	} while (0)

#endif

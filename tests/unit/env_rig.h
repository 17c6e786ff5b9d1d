/* SPDX-License-Identifier: Apache-2.0 */
/* Environments in the scratch directory. */
#ifndef UNIT_ENV_RIG_H
#define UNIT_ENV_RIG_H

#include "store/env/env.h"
#include "store/pins/pin_page.h"
#include "tests/unit/unit.h"

static const char *const databases[] = {"one", "two"};

static const struct pin_places *places_of(void)
{
	static struct pin_places places;

	(void)snprintf(places.path[0], sizeof(places.path[0]), "%s", scratch_path("pins"));
	(void)mkdir(places.path[0], 0700); /* is there from the second call on */
	return &places;
}

static inline struct env *open_env(const char *name, enum env_mode mode)
{
	struct env_options options = {.mode = mode,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 16u << 20,
		.file_mode = 0600};
	const char *path = scratch_path(name);
	struct env *env = NULL;

	(void)mkdir(path, 0700);
	options.places = places_of();
	OK(env_open(path, &options, &env));
	return env;
}

static inline void put(struct env *env, const char *key, size_t size)
{
	struct txn *txn = NULL;

	void *place;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_reserve(txn, 0, bytes_str(key), size, 0, &place), 0);
	memset(place, key[0], size);
	cr_assert_eq(txn_commit(&txn), 0);
	cr_assert_null(txn);
}

static inline int open_code(const char *name, enum env_mode mode)
{
	struct env_options options = {.mode = mode,
		.databases = databases,
		.n_databases = 2,
		.map_bytes = 16u << 20,
		.file_mode = 0600,
		.places = places_of()};
	CLEANUP(env_close) struct env *env = NULL;
	int r = env_open(scratch_path(name), &options, &env);

	return r;
}

/* Returns the number of the newest state; 0: the environment is refused, with a sentence, and
 * *RET_CODE says why. */
static inline uint64_t newest_of(const char *name, enum env_mode mode, int *ret_code)
{
	struct env_options options = {
		.mode = mode, .databases = databases, .n_databases = 2, .places = places_of()};
	struct env *env = NULL;
	struct txn *txn = NULL;
	uint64_t id = 0;
	int r = env_open(scratch_path(name), &options, &env);

	if (r == 0 && txn_begin_read(env, &txn) == 0)
		id = txn_id(txn);
	cr_assert(id || *err_text(r));
	txn_abort(&txn);
	env_close(&env);
	if (ret_code)
		*ret_code = r;
	return id;
}

static inline uint64_t newest_or_damaged(const char *name)
{
	int r;
	uint64_t id = newest_of(name, ENV_READ, &r);

	cr_assert(id || r == ERR_CORRUPT || r == ERR_FORMAT || r == -ENOMEM, "%s", err_text(r));
	return id;
}

/* Opens it and reads KEY. Returns the first byte of its value; 0: an error, or there is none. */
static inline char read_key(const char *name, const char *key)
{
	struct env_options options = {
		.mode = ENV_READ, .databases = databases, .n_databases = 2, .places = places_of()};
	CLEANUP(env_close) struct env *env = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct bytes value;
	char first = 0;

	if (env_open(scratch_path(name), &options, &env) == 0 && txn_begin_read(env, &txn) == 0 &&
		txn_get(txn, 0, bytes_str(key), &value) == FOUND)
		first = *(const char *)value.data;
	return first;
}

#endif

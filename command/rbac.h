/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf config rbac: the rights of the daemons' account at the API server, as YAML for kubectl
 * apply. They follow from the feeds of a configuration: a ClusterRole for feeds of all namespaces,
 * a Role in each named namespace, and their bindings. The API server is not asked: resources.def
 * has the groups of its own resources; those of custom ones are in the name (widgets.example.com)
 * or in the store.
 */
#ifndef COMMAND_RBAC_H
#define COMMAND_RBAC_H

#include "common/buf.h"
#include "common/config/config.h"
#include "common/options.h"
#include "reader/kinf.h"

struct rbac_args {
	const char *name;         /* of the roles and bindings; NULL: kinf */
	const char *namespace_;   /* of the service account; NULL: kinf-system */
	const char *account;      /* NULL: kinf */
	const char *user, *group; /* instead of a service account */
};
struct options_group rbac_options(struct rbac_args *args);

/* Checks that the options name one account. Returns: 0; ERR_SYNTAX by options_bad(). */
int rbac_check_args(const struct options *options, const struct rbac_args *args);

/* Returns true if ARGS has an option. */
bool rbac_is_asked(const struct rbac_args *args);

/* Appends the YAML for the feeds of CONFIG. SNAPSHOT (NULL: none) is of its store. Returns: 0;
 * ERR_CONFIG: the group of a resource is unknown; -ENOMEM. */
int rbac_write(const struct config *config, const struct rbac_args *args,
	struct kinf_snapshot *snapshot, struct buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf config rbac: the rights that the account of the daemons needs at the API server, as YAML
 * for kubectl apply. They follow from the feeds of a configuration: a ClusterRole for feeds of
 * all namespaces, a Role in each namespace that a feed names, and their bindings. Nothing is
 * asked of the API server: the groups of its own resources are in rbac.def, those of custom ones
 * in the name (widgets.example.com) or in the store.
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

/* Checks the values of the options. Returns: 0; ERR_SYNTAX by options_bad(). */
int rbac_check_args(const struct options *options, const struct rbac_args *args);

/* Returns whether an option of ARGS is given. */
bool rbac_is_asked(const struct rbac_args *args);

/* Appends the YAML for the feeds of CONFIG. SNAPSHOT (NULL: none) is of the store that it
 * describes.
 * Returns: 0; ERR_CONFIG: the group of a resource is not known; -ENOMEM. */
int rbac_write(const struct config *config, const struct rbac_args *args,
	struct kinf_snapshot *snapshot, struct buf *out);

#endif

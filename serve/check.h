/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_CHECK_H
#define SERVE_CHECK_H

#include "common/config/config.h"

/* Checks the files and addresses that CONFIG names for kinf-serve, without serving: files can be
 * read and fit together, addresses can be bound. Returns: 0; ERR_CONFIG, ERR_TLS,
 * -EADDRNOTAVAIL, ... */
int serve_check(const struct config *config);

#endif

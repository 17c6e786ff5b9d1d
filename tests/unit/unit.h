/* SPDX-License-Identifier: Apache-2.0 */
/* What nearly each unit test includes: Criterion, the C library, errors, cleanup, scratch files. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/unit/scratch.h"

#endif

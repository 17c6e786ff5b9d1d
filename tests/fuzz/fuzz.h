/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target: passes bytes to a parser, with sanitizers, and checks by REQUIRE the properties
 * common to all bytes. It keeps no state from one input to the next.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

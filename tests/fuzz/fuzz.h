/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target: bytes from outside into one of our readers, under the sanitizers, with the properties
 * that must hold for any bytes as REQUIREs. It keeps nothing between two inputs that could change what
 * the second does.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

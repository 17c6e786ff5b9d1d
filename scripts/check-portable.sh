#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every C file of the product with clang, without linking. Prints the errors and warnings; exit 1 if there are any,
# 77 if the compiler is missing (scripts/dependencies.sh clang).
# usage: scripts/check-portable.sh clang
set -u
cd "$(dirname "$0")/.." || exit 1

case ${1:-} in
    clang) compiler=clang ;;
    *) echo "usage: scripts/check-portable.sh clang" >&2; exit 2 ;;
esac
command -v "$compiler" >/dev/null || { echo "check-portable: there is no $compiler" >&2; exit 77; }

directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
# Not all of /usr/include, because its C library is another machine's.
for name in lmdb.h curl xxhash.h xxh3.h yaml.h msgpack msgpack.h nghttp2 openssl; do
    for from in /usr/include /usr/include/*-linux-gnu; do
        [ -e "$from/$name" ] && ln -sfn "$from/$name" "$directory/$name"
    done
done
failed=0
for file in common store reflector processor reader print command serve; do
    find "$file" -name '*.c'
done | sort >"$directory/files"
while read -r file; do
    "$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-gnu-variable-sized-type-not-at-end \
        -I. -I"$directory" -D_GNU_SOURCE '-DKINF_VERSION="0"' -fPIC -c "$file" -o "$directory/object.o" || failed=$((failed + 1))
done < <(sed '/python/d' "$directory/files")
echo "$(grep -vc python "$directory/files") files, $failed failed"
[ "$failed" = 0 ]

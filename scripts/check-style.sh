#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The machine-checked rules of the tree: layers, foreign headers, banned calls, self-contained
# headers, exported symbols, references to documents and cases. One line per violation; exit 1 when
# there is one.
set -eu
cd "$(dirname "$0")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT

folders=$(ls -d common store reflector processor reader print command serve tests 2>/dev/null || true)
# shellcheck disable=SC2086 # words on purpose
sources=$(find $folders \
    \( -name '*.c' -o -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.def' \) | sort)
headers=$(echo "$sources" | grep '\.h$' || true)
scripts=$(find scripts tests reader/python \( -name '*.sh' -o -name '*.py' -o -name '*.toml' \) | sort)

bad() { awk -v why="$1" '{ print $0 ": " why }' >>"$out"; }

# Code lines matching $1 in the files of standard input, as FILE:LINE:TEXT; comment lines do not
# count.
code() { xargs grep -nHE "$1" 2>/dev/null | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(/\*|\*)' || true; }

in_folder() { echo "$sources" | grep "^$1/" || true; }

# ---- layers: common < store < {reflector, processor, reader}; reader < print < {command, serve} --

layer() { # FOLDER, what it may include
    in_folder "$1" | code "^#include \"" |
        grep -vE ":#include \"(($2)/|kinf(_informer|_queue)?\.hp*\"$)" |
        bad 'crosses a layer' || true
}
layer common common
layer store 'common|store'
layer reflector 'common|store|reflector'
layer processor 'common|store|processor'
layer reader 'common|store|reader'
layer print 'common|store|reader|print'
layer command 'common|store|reader|print|command'
layer serve 'common|store|reader|print|serve'
layer tests/simulator 'common|tests/simulator'

debug_events=$(sed -nE 's/^EVENT\(([a-z0-9_]+), DEBUG,.*/\1/p' common/log.def | paste -sd '|')
{ in_folder common; in_folder store; } | grep -vE '^common/(log\.|daemon/)' |
    code '(^|[^A-Z_])LOG\(' |
    grep -vE "LOG\(($debug_events)[,)]" | bad 'libraries log at debug only'
logged=$(echo "$sources" | grep '\.c$' | grep -v '^tests/' | xargs grep -ohE 'LOG\([a-z0-9_]+[,)]' | tr -d ',)' | sort -u)
sed -nE 's/^EVENT\(([a-z0-9_]+),.*/LOG(\1/p' common/log.def | grep -vxF "$logged" |
    sed 's/^LOG(/common\/log.def: /' | bad 'no code logs it'

# ---- a negative result has a sentence ------------------------------------------------------------

# Directories still to convert, and tests: they report in other ways.
unconverted=$(paste -sd '|' <<'END'
tests
END
)

bare='(return|[?:]|[[:space:]]r =) *\(?(-E[A-Z0-9]+|ERR_[A-Z_]+|-errno)( *[;:)]|$)'
echo "$sources" | grep -E '\.(c|cpp)$' | grep -vE "^($unconverted)(/|$)" |
    code "$bare" | grep -vE 'err_(set|say|add)\(|[=!<>]= *\(?(-E|ERR_)|case (-E|ERR_)' |
    bad 'a negative result needs a sentence: err_set(code, ...)' || true

# ---- each foreign header in one file -------------------------------------------------------------

foreign() { # header (a regular expression), files that may include it (too)
    echo "$sources" | code "^#include [<\"]$1[>\"]" | grep -vE "^($2):" |
        bad "this header belongs into $(echo "$2" | tr -d '\\' | sed 's/|/ or /g')" || true
}
foreign 'lmdb\.h' 'store/env/env_internal\.h'
foreign 'curl/.*' 'reflector/net/http_internal\.h|serve/http/upstream_internal\.h'
foreign 'msgpack.*' 'common/value/value\.c'
foreign 'simdjson.*' 'common/value/json_parse\.cpp'
foreign 'yaml\.h' 'common/value/yaml(_values)?\.c'
foreign 'archive(_entry)?\.h' 'reflector/import/source_archive\.c'
foreign 'xxhash\.h' 'common/hash\.c'
foreign 'stdatomic\.h' 'store/ring/.*|common/stats\.c|common/proc\.c|tests/.*'
foreign 'nghttp2/.*' 'serve/http/http2\.c|tests/bench/swarm_client\.c'
foreign 'openssl/.*' 'serve/http/tls_internal\.h|tests/bench/swarm_client\.c'
foreign 'criterion/.*' 'tests/unit/.*'
[ "$(echo "$sources" | code '^#include <microhttpd\.h>' | wc -l)" -le 1 ] ||
    echo "$sources" | code '^#include <microhttpd\.h>' | bad 'this header belongs into one file'

# ---- calls ---------------------------------------------------------------------------------------

# By name, not as compile errors: poisoning them breaks system headers (struct members called
# signal, later declarations).
banned='strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|gets|alloca|signal|system|usleep'
banned="$banned|localtime|gmtime|ctime|asctime"
echo "$sources" | code "(^|[^A-Za-z0-9_.>])($banned)\(" | bad 'banned call'
echo "$sources" | grep -v '^tests/' | code '(^|[^A-Za-z0-9_])strto(u?ll?|[iu]max)\(' |
    bad 'use common/text/decimal.h'
echo "$sources" | grep -vE '^tests/|/main\.c$|^common/check\.c$' |
    code '(^|[^A-Za-z0-9_])(exit|abort)\(' | bad 'ends the process outside of main.c and check.c'

# ---- text of the files ---------------------------------------------------------------------------

for f in $sources; do
    read -r first <"$f" || true
    [ "$first" = '/* SPDX-License-Identifier: Apache-2.0 */' ] ||
        echo "$f:1" | bad 'no SPDX line first'
done
for f in $scripts Makefile; do
    { read -r first && read -r second; } <"$f" || true
    [ "$first" = '# SPDX-License-Identifier: Apache-2.0' ] || [ "$second" = '# SPDX-License-Identifier: Apache-2.0' ] ||
        echo "$f:1" | bad 'no SPDX line first'
done

# Such a header compiles alone, as the beginning of its own file.
own_headers=$(echo "$sources" | sed -nE 's/\.(c|cpp)$/.h/p' | grep -xF "$headers")
# shellcheck disable=SC2086 # words on purpose
for f in $own_headers; do [ -f "${f%.h}.c" ] && echo "${f%.h}.c" || echo "${f%.h}.cpp"; done | xargs awk '
    FNR == 1 { seen = 0; own = FILENAME; sub(/\.[a-z]*$/, ".h", own) }
    !seen && /^#include/ { seen = 1; if ($0 != "#include \"" own "\"") print FILENAME ":1" }' |
    bad "its own header is not the first"

echo "$sources" | xargs grep -nHE '^[[:space:]]*//' | bad 'comments are written /* so */' || true
echo "$sources $scripts Makefile" | xargs grep -nHwE 'TODO|FIXME|XXX' |
    grep -v '^scripts/check-style\.sh:' | bad 'unfinished' || true

# One magic value per kind of object: CHECK_OBJ tells them apart.
echo "$sources" | code '#define [A-Z_]*MAGIC[[:space:]]+0x' |
    sed -E 's/^([^:]+:[0-9]+):.*MAGIC[[:space:]]+(0x[0-9A-Fa-f]+).*/\2 \1/' |
    tr 'A-F' 'a-f' | sort |
    awk '$1 == last { print $2 ": magic " $1 " is also in " place } { last = $1; place = $2 }' >>"$out"

# ---- headers compile alone -----------------------------------------------------------------------

flags='-fsyntax-only -I. -D_GNU_SOURCE -DKINF_VERSION=""'
# shellcheck disable=SC2086 # words on purpose
echo "$headers" | grep -vxF "$own_headers" | xargs -P 2 -n 8 ${CC:-gcc} -std=gnu11 $flags -x c 2>&1 |
    grep -E 'error:' >>"$out" || true
for header in reader/kinf*.h reader/kinf*.hpp; do
    # shellcheck disable=SC2086
    ${CXX:-g++} -std=c++17 -Wall -Wextra -Wpedantic -Wshadow $flags -x c++ "$header" 2>&1 |
        grep -E 'error:|warning:' >>"$out" || true
done

# ---- libkinf exports its own names only ----------------------------------------------------------

for library in build/*/libkinf.so.0; do
    [ -f "$library" ] || continue
    nm -D --defined-only "$library" | awk -v l="$library" \
        '$2 != "A" && $3 !~ /^kinf_/ { print l ": exports " $3 }' >>"$out"
done

# ---- git holds text only -------------------------------------------------------------------------

if git rev-parse --git-dir >/dev/null 2>&1; then
    # An empty file counts as binary.
    git ls-files -z | xargs -0 grep -LI '' | while read -r f; do
        case $f in tests/fuzz/seeds/*) continue ;; esac
        [ ! -s "$f" ] ||
            echo "$f" | bad 'a binary file: what is downloaded or built is not committed'
    done
fi

# ---- commits: `area: imperative summary` of at most 72 characters --------------------------------

# Older subjects were written before this rule. A shallow clone or a released tree has no such
# history.
first_commit=7e6a6cf1
if git rev-parse -q --verify "$first_commit^{commit}" >/dev/null 2>&1; then
    git log --no-merges --format='%h %s' "$first_commit..HEAD" | grep -E '^[^ ]+ .{73}' | bad 'its subject has over 72 characters' || true
    git log --no-merges --format='%h %s' "$first_commit..HEAD" | grep -vE '^[^ ]+ [A-Za-z0-9_./,{} -]+: [^ ].*[^.]$' |
        bad "not 'area: imperative summary' without a final stop" || true
fi

# ---- the layout of the code, by clang-format 14 --------------------------------------------------

for format in clang-format-14 clang-format; do
    "$format" --version 2>/dev/null | grep -q 'version 14\.' || continue
    echo "$sources" | grep -v '\.def$' | xargs "$format" --dry-run -Werror 2>&1 |
        sed -nE 's/^([^ ]+:[0-9]+):[0-9]+: error: .*/\1/p' | bad 'not what clang-format makes of it'
    break
done

# ---- Go: the same first line, and the layout of gofmt --------------------------------------------

find go -name '*.go' | sort | while read -r f; do
    read -r first <"$f"
    [ "$first" = '// SPDX-License-Identifier: Apache-2.0' ] ||
        echo "$f:1" | bad 'no SPDX line first'
done
for format in gofmt /usr/local/go/bin/gofmt; do
    "$format" -l go/kinf.go >/dev/null 2>&1 || continue
    "$format" -l go | bad 'not what gofmt makes of it'
    break
done

# ---- one version everywhere ----------------------------------------------------------------------

scripts/check-version.sh >>"$out" || true

# ---- references to documents, sections, cases and rows -------------------------------------------

python3 scripts/check-references.py >>"$out" || true

# ---- the shape of the tree: sizes of files and functions, circles of includes, names, prose ------

python3 scripts/house.py --check >>"$out" || true

# ---- manual pages: prototypes, structures, counters, keys (test_manual.py: options) --------------

python3 scripts/manual.py >>"$out" || true

cat "$out"
[ ! -s "$out" ]

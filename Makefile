# SPDX-License-Identifier: Apache-2.0
# One Makefile for everything; "make help" lists the targets.
#   VARIANT=release|debug|asan|tsan|arm64   V=1 shows commands   DEVELOPER=1 adds -Werror

VARIANT ?= release
PREFIX ?= /usr/local
DESTDIR ?=
PKG_CONFIG ?= pkg-config
PYTHON ?= /usr/bin/python3
VERSION := 0.1.0
SONAME := libkinf.so.0

B := build/$(VARIANT)
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')

.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

# ---- flags ---------------------------------------------------------------------------------------

CFLAGS ?= -O2 -g
CXXFLAGS ?= -O2 -g
# maybe-uninitialized: gcc does not know error codes as negative; the sanitizers see the real ones.
warnings := -Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wvla -Wundef -Wformat=2 \
	-Wno-missing-field-initializers -Wno-maybe-uninitialized $(if $(DEVELOPER),-Werror)
c_warnings := -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
common_flags := -I. -D_GNU_SOURCE -DKINF_VERSION='"$(VERSION)"' -fvisibility=hidden -fPIC \
	-fno-strict-overflow $(warnings)
# The sanitizers' reports need lines (-g1), not variables: compiling takes a fifth less. gold links
# the tests' 200 programs in a fifth of the time.
test_flags := -O1 -g1 -DKINF_FAILPOINTS -fno-omit-frame-pointer
gold := $(if $(shell command -v ld.gold),-fuse-ld=gold)
ifeq ($(VARIANT),asan)
variant_flags := -fsanitize=address,undefined -fno-sanitize-recover=undefined $(test_flags)
# Criterion's assertions are macros. The undefined behaviour sanitizer and inlined checks would cost
# as much time on them as the optimizer.
unit_flags := -fno-sanitize=undefined \
	$(if $(findstring clang,$(CC)),,--param asan-instrumentation-with-call-threshold=0)
# A program with the sanitizers linked in starts and ends in 11 ms of CPU, one loading them in 13,
# and one at a fixed address in 9.
program_flags := $(gold) -no-pie $(if $(findstring clang,$(CC)),,-static-libasan -static-libubsan)
else ifeq ($(VARIANT),tsan)
# GCC warns about fences (store/env/env_pins.c), missing in its ThreadSanitizer's model: it may then
# report too much.
variant_flags := -fsanitize=thread $(test_flags) -Wno-unknown-warning-option -Wno-tsan
program_flags := $(gold)
else ifeq ($(VARIANT),fuzz)
CC := clang-14
CXX := clang++-14
variant_flags := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -O1 -Wno-unknown-warning-option
else ifeq ($(VARIANT),debug)
variant_flags := -O1 -DKINF_FAILPOINTS
else ifeq ($(VARIANT),arm64)
# Debian's cross compiler, with the libraries of `scripts/dependencies.sh arm64`.
ARM64_ROOT ?= build/arm64-root
CC := aarch64-linux-gnu-gcc
CXX := aarch64-linux-gnu-g++
variant_flags := --sysroot=$(abspath $(ARM64_ROOT)) -O1 -DKINF_FAILPOINTS
endif
all_cflags = -std=gnu11 $(CFLAGS) $(common_flags) $(c_warnings) $(variant_flags) $(CPPFLAGS)
all_cxxflags = -std=c++17 -fno-rtti $(CXXFLAGS) $(common_flags) $(variant_flags) $(CPPFLAGS)

store_libs := -llmdb -lmsgpackc -lyaml -lxxhash -lpthread -lm
json_libs := -lsimdjson -lstdc++
curl_libs := -lcurl
serve_libs := -lnghttp2 -lssl -lcrypto -lisal
link = $(CC) $(CFLAGS) $(variant_flags) $(if $(filter %.so %.so.0,$@),,$(program_flags)) \
	$(LDFLAGS) -o $@

# ---- what there is -------------------------------------------------------------------------------

# All C and C++ files of folder $(1) and the folders in it.
sources = $(sort $(shell find $(1) -name '*.c' -o -name '*.cpp'))
objects = $(patsubst %,$(B)/%.o,$(basename $(1)))
common_src := $(call sources,common)
store_src := $(call sources,store)
reflector_src := $(filter-out reflector/main.c,$(call sources,reflector))
processor_src := $(filter-out processor/main.c,$(call sources,processor))
reader_src := $(call sources,reader)
print_src := $(call sources,print)
command_src := $(filter-out command/main.c,$(call sources,command))
serve_src := $(filter-out serve/main.c,$(call sources,serve))
simulator_src := $(filter-out tests/simulator/main.c,$(call sources,tests/simulator))
unit_src := $(sort $(wildcard tests/unit/test_*.c))
# In tests/bench a file with a header of its own is shared by the programs (without headers).
bench_src := $(sort $(wildcard $(patsubst %.h,%.c,$(wildcard tests/bench/*.h))))
program_src := $(sort $(wildcard tests/stress/*.c tests/programs/*.c tests/differential/*.c) \
	$(filter-out $(bench_src),$(wildcard tests/bench/*.c)))
# One program of all its files.
model_src := $(sort $(wildcard tests/model/*.c))
fuzz_src := $(sort $(wildcard tests/fuzz/fuzz_*.c))
# Helpers of the unit tests, without tests of their own.
support_src := $(filter-out $(unit_src),$(call sources,tests/unit))

archives := common store reflector processor reader print command serve simulator support bench
$(foreach a,$(archives),$(eval $(a)_lib := $(B)/lib$(a).a))
all_src := $(foreach a,$(archives),$($(a)_src)) $(unit_src) $(program_src) $(model_src) \
	tests/bench/preload/recv.c $(wildcard tests/torture/*.c) $(fuzz_src) tests/fuzz/driver.c \
	$(wildcard reflector/main.c processor/main.c command/main.c serve/main.c \
	tests/simulator/main.c)

programs := $(if $(wildcard command/main.c),$(B)/kinf) \
	$(if $(wildcard reflector/main.c),$(B)/kinf-reflector) \
	$(if $(wildcard processor/main.c),$(B)/kinf-processor) \
	$(if $(wildcard serve/main.c),$(B)/kinf-serve) \
	$(if $(wildcard tests/simulator/main.c),$(B)/kinf-simulator)
library := $(if $(wildcard reader/kinf.map),$(B)/$(SONAME))
unit_tests := $(patsubst tests/unit/%.c,$(B)/unit/%,$(unit_src))
test_programs := $(patsubst tests/%.c,$(B)/%,$(program_src)) $(if $(model_src),$(B)/model/model)
fuzzers := $(patsubst tests/%.c,$(B)/%,$(fuzz_src))

.PHONY: all quick-tests tests fuzzers fuzz run test check-all bench bench-swarm check-style check-unit \
		check-differential check-go-suites check-h2spec check-arm64 check-clang \
		check-real check-real-faults check-world format manual install uninstall wheel \
		deb check-packages clean help dependencies dist
all: $(programs) $(library) ## build the programs and the library into build/release
torture_programs := \
	$(addprefix $(B)/torture/,kinf kinf-reflector kinf-processor kinf-serve informer)
# What `make test` runs.
quick-tests: all $(torture_programs) $(unit_tests) $(fuzzers) \
		$(addprefix $(B)/bench/,fill latency swarm) \
		$(filter $(B)/model/% $(B)/programs/%,$(test_programs))
tests: quick-tests $(B)/torture/faults.so $(B)/torture/recorder.so $(B)/torture/pages.so \
		$(B)/torture/bytes $(test_programs) \
		$(if $(bench_src),$(B)/bench/preload.so)

# ---- rules ---------------------------------------------------------------------------------------

# Rebuilds everything when flags change.
$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(CC) $(all_cflags) $(CXX) $(all_cxxflags) $(program_flags) $(LDFLAGS)' | \
		cmp -s - $@ || \
		echo '$(CC) $(all_cflags) $(CXX) $(all_cxxflags) $(program_flags) $(LDFLAGS)' > $@
FORCE:

# Criterion's assertions are macros; an optimizer takes three times as long on them, for nothing.
$(call objects,$(unit_src)): object_flags := -O0 $(unit_flags)
# It searches millions of states of its own.
$(B)/tests/unit/test_pins_model.o: object_flags := -O2 -fno-sanitize=address

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(all_cflags) $(object_flags) -MMD -MP -c -o $@ $<

$(B)/print/table/printer.o: print/table/descriptions.txt # assembled into it

$(B)/%.o: %.cpp $(B)/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(all_cxxflags) -MMD -MP -c -o $@ $<

define archive_rule
$$($(1)_lib): $$(call objects,$$($(1)_src))
	$$(call say,AR,$$@)
	$$(Q)mkdir -p $$(@D) && rm -f $$@ && ar crs $$@ $$^
endef
$(foreach a,$(archives),$(eval $(call archive_rule,$(a))))

$(B)/kinf-reflector: $(B)/reflector/main.o $(reflector_lib) $(store_lib) $(common_lib)
	$(call say,LINK,$@)
	$(Q)$(link) $^ $(curl_libs) $(store_libs) $(json_libs)

$(B)/kinf-processor: $(B)/processor/main.o $(processor_lib) $(store_lib) $(common_lib)
	$(call say,LINK,$@)
	$(Q)$(link) $^ $(store_libs)

$(B)/kinf-serve: $(B)/serve/main.o $(serve_lib) $(print_lib) $(reader_lib) $(store_lib) \
		$(common_lib)
	$(call say,LINK,$@)
	$(Q)$(link) $^ $(serve_libs) $(curl_libs) $(store_libs)

# No C++ and no curl here: a reading process stays small.
$(B)/kinf: $(B)/command/main.o $(command_lib) $(print_lib) $(reader_lib) $(store_lib) $(common_lib)
	$(call say,LINK,$@)
	$(Q)$(link) $^ $(store_libs)

$(B)/$(SONAME): reader/kinf.map $(reader_lib) $(store_lib) $(common_lib)
	$(call say,LINK,$@)
	$(Q)$(link) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=reader/kinf.map \
		-Wl,--whole-archive $(reader_lib) -Wl,--no-whole-archive $(store_lib) \
		$(common_lib) $(store_libs)
	$(Q)ln -sf $(SONAME) $(B)/libkinf.so

# `make test` builds it with the flags of `make`, and of them only libkinf besides.
simulator_common := $(call objects,$(addprefix common/,array.c buf.c check.c err.c failpoint.c log.c \
	proc.c config/units.c $(addprefix text/,base64.c decimal.c text.c timestamp.c utf8.c) \
	$(addprefix value/,field.c json_parse.cpp json_unescape.c number.c path.c path_eval.c \
	path_parse.c quantity.c selector.c selector_fields.c selector_labels.c selector_limit.c \
	value.c)))
$(B)/kinf-simulator: $(B)/tests/simulator/main.o $(simulator_lib) $(simulator_common)
	$(call say,LINK,$@)
	$(Q)$(link) $^ -lmicrohttpd $(store_libs) $(json_libs)

# tests/torture: the programs again, with failing allocations.
torture_wraps := malloc calloc realloc strdup strndup asprintf _ZnwmRKSt9nothrow_t
torture_link = $(link) $^ $(torture_wraps:%=-Wl,--wrap=%)
$(B)/torture/kinf-reflector: $(B)/reflector/main.o $(reflector_lib) $(store_lib) $(common_lib)
$(B)/torture/kinf-processor: $(B)/processor/main.o $(processor_lib) $(store_lib) $(common_lib)
$(B)/torture/kinf: $(B)/command/main.o $(command_lib) $(print_lib) $(reader_lib) $(store_lib) \
		$(common_lib)
$(B)/torture/kinf-serve: $(B)/serve/main.o $(serve_lib) $(print_lib) $(reader_lib) $(store_lib) \
		$(common_lib)
$(B)/torture/informer: $(B)/tests/programs/informer.o $(reader_lib) $(store_lib) $(common_lib)
$(torture_programs): $(B)/tests/torture/allocations.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(torture_link) $(if $(findstring serve,$@),$(serve_libs)) \
		$(if $(filter %reflector %serve,$@),$(curl_libs)) $(store_libs) \
		$(if $(findstring reflector,$@),$(json_libs))

$(B)/torture/bytes: $(B)/tests/torture/bytes.o $(B)/tests/torture/questions.o $(reader_lib) \
		$(store_lib) $(common_lib)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $^ $(store_libs)

# Loaded into programs (LD_PRELOAD); a sanitizer's own wrappers would be in the way.
$(B)/torture/%.so: $(B)/tests/torture/%.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) -shared $^ -ldl

test_archives := $(serve_lib) $(command_lib) $(print_lib) $(reader_lib) $(processor_lib) \
	$(reflector_lib) $(simulator_lib) $(store_lib) $(common_lib)
# Each test is a process: it loads only the libraries it calls. no_certificates.c takes the place of
# a function of a library.
no_certificates := mbedtls_x509_crt_parse_file
$(B)/unit/test_event_path: unit_wraps := json_parse cutter_take scan_key scan_value scan_member \
	cursor_seek
$(B)/unit/%: $(B)/tests/unit/%.o $(support_lib) $(test_archives)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $(unit_wraps:%=-Wl,--wrap=%) \
		-Wl,-u,$(no_certificates),--export-dynamic-symbol=$(no_certificates) $^ \
		-Wl,--as-needed -lcriterion -lmicrohttpd \
		$(serve_libs) $(curl_libs) $(store_libs) $(json_libs)

$(B)/model/model: $(patsubst %.c,$(B)/%.o,$(model_src))
$(B)/model/% $(B)/programs/% $(B)/differential/%: $(test_archives)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(test_archives) -Wl,--as-needed $(serve_libs) $(curl_libs) \
		$(store_libs) $(json_libs)
# `make test` builds it with ThreadSanitizer, and nothing else: only its own sources are compiled
# for it.
ring_threads_src := store/ring/ring.c store/ring/ring_reader.c \
	$(addprefix common/,buf.c check.c crc.c err.c failpoint.c log.c proc.c \
	text/decimal.c text/timestamp.c text/utf8.c)
$(B)/stress/ring_threads: $(B)/tests/stress/ring_threads.o $(call objects,$(ring_threads_src))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $^ -lxxhash -lpthread
$(B)/stress/%: $(reader_lib) $(store_lib) $(common_lib)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(reader_lib) $(store_lib) $(common_lib) $(store_libs)
# Each target with libFuzzer; elsewhere with a main to run files.
$(fuzzers): $(B)/fuzz/%: $(B)/tests/fuzz/%.o \
		$(if $(filter fuzz,$(VARIANT)),,$(B)/tests/fuzz/driver.o) $(test_archives)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer) $^ -Wl,--as-needed \
		$(serve_libs) $(curl_libs) $(store_libs) $(json_libs)
fuzzers: $(fuzzers)

# Private memory is measured: only called libraries are loaded.
$(B)/bench/%: $(bench_lib) $(test_archives)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $(filter %.o,$^) $(bench_lib) $(test_archives) -Wl,--as-needed $(serve_libs) \
		$(curl_libs) $(store_libs) $(json_libs)

# Loaded into a measured program, to take times inside it.
$(B)/bench/preload.so: $(B)/tests/bench/preload/recv.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) -shared $^
$(foreach p,$(filter-out %/model,$(test_programs)),$(eval $(p): $(patsubst $(B)/%,$(B)/tests/%.o,$(p))))

-include $(patsubst %,$(B)/%.d,$(basename $(all_src)))

# ---- what people type ----------------------------------------------------------------------------

dependencies: ## install what is missing through the package manager
	$(Q)scripts/dependencies.sh

run: dependencies ## build and run: your cluster, or a simulated one when there is no kubeconfig
	$(Q)$(MAKE) --no-print-directory all
	$(Q)scripts/run.sh $(B)

test: dependencies ## every test without a real cluster; ends with "N passed, N failed"
	$(Q)scripts/test.sh

check-all: dependencies ## test, then the slow suites: longer kills, stress, the real API server
	$(Q)scripts/check-all.sh

fuzz: ## run each fuzz target for FUZZ_SECONDS (60) of CPU time with libFuzzer, seeds first
	$(Q)scripts/dependencies.sh fuzz
	$(Q)$(MAKE) --no-print-directory VARIANT=fuzz fuzzers
	$(Q)scripts/fuzz.sh build/fuzz/fuzz

bench: dependencies ## measure, side by side with client-go where it is there
	$(Q)$(MAKE) --no-print-directory all \
		$(filter $(B)/bench/%,$(test_programs)) $(B)/bench/preload.so
	$(Q)scripts/bench.sh $(B)

bench-swarm: dependencies ## measure kinf-serve by thousands of clients, and KUBECONFIG's API server
	$(Q)$(MAKE) --no-print-directory all $(B)/bench/swarm $(B)/bench/fill
	$(Q)PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/bench/swarm.py $(B) $(PARTS)

check-unit: $(unit_tests) ## unit tests of this VARIANT
	$(Q)scripts/check-unit.sh $(B)

check-h2spec: all ## the conformance tests of HTTP/2 (scripts/dependencies.sh h2spec)
	$(Q)scripts/check-h2spec.sh $(B)

check-arm64: ## the unit tests on arm64, with qemu-user (scripts/dependencies.sh arm64)
	$(Q)scripts/dependencies.sh arm64
	$(Q)scripts/check-arm64.sh

check-clang: ## every product file compiles with clang
	$(Q)scripts/check-portable.sh clang

check-real: all ## against the cluster of KUBECONFIG=...: equality, churn with kills, no LIST after
	$(Q)KUBECONFIG='$(KUBECONFIG)' scripts/check-real.sh $(B)

check-world: all ## a lifelike cluster of KINF_WORLD=DIR: churn with kills, kubectl and kinf
	$(Q)KINF_WORLD='$(KINF_WORLD)' scripts/check-world.sh $(B)

check-real-faults: all ## a real API server of KINF_LAB=DIR, restarted, frozen, set back and so on
	$(Q)KINF_LAB='$(KINF_LAB)' scripts/check-real-faults.sh $(B)

check-differential: $(B)/differential/libkinf
check-differential: all ## handlers against client-go's, if Go and it are there
	$(Q)scripts/check-differential.sh $(B) $(SEEDS)

check-go-suites: all ## suites of client-go and controller-runtime; change KUBECONFIG's cluster
	$(Q)KUBECONFIG='$(KUBECONFIG)' KINF_BUILD=$(B) scripts/check-go-suites.sh

check-style: ## layers, foreign headers, banned calls, headers that compile alone
	$(Q)scripts/check-style.sh

house: ## the shape of the tree: sizes, functions, modules, names, prose
	$(Q)scripts/house.py

format: ## clang-format over the C files
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' '*.cpp')

manual: all ## put options, prototypes and counters as they are into the manual pages
	$(Q)scripts/manual.py --write $(B)

places = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' VERSION='$(VERSION)' LIBDIR='$(LIBDIR)' \
	UNITDIR='$(UNITDIR)' PYTHONDIR='$(PYTHONDIR)' SYSCONFDIR='$(SYSCONFDIR)'
install: all ## into $(DESTDIR)$(PREFIX)
	$(Q)$(places) scripts/install.sh $(B)

uninstall: ## takes away what install put there
	$(Q)$(places) scripts/install.sh --remove $(B)

deb: ## Debian packages in build/deb (scripts/dependencies.sh packages)
	$(Q)scripts/dependencies.sh packages
	$(Q)scripts/deb.sh build/deb

check-packages: ## packages, units and the container's steps, tried in a clean root (as root)
	$(Q)scripts/dependencies.sh packages
	$(Q)scripts/check-packages.sh

wheel: all ## the Python module with the library in it, as $(B)/wheel/*.whl
	$(Q)rm -rf $(B)/wheel && mkdir -p $(B)/wheel && cp -r reader/python $(B)/wheel/source
	$(Q)KINF_BUNDLE='$(abspath $(B)/$(SONAME))' $(PYTHON) -m pip wheel --quiet \
		--disable-pip-version-check \
		--no-build-isolation --no-deps --no-index -w $(B)/wheel $(B)/wheel/source
	$(Q)rm -rf $(B)/wheel/source && ls $(B)/wheel/*.whl

dist: ## the tree as kinformer-$(VERSION).tar.gz
	$(Q)mkdir -p build && git archive --prefix=kinformer-$(VERSION)/ \
		-o build/kinformer-$(VERSION).tar.gz HEAD

clean: ## remove build/
	$(Q)rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

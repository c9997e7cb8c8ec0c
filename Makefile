# rampart: builds rdma_server, rdma_client and performance_test. `make help` lists the targets.

# None of make's own rules: one of them takes a folder for a program of the same name's source.
MAKEFLAGS += --no-builtin-rules

ifeq ($(origin CC),default)
CC := $(if $(shell command -v ccache),ccache )gcc
endif
ifeq ($(origin AR),default)
AR := gcc-ar # knows the objects of link time optimisation
endif
comma := ,
# Link-time optimisation lets the compiler inline small functions across files: a round trip over RDMA takes a tenth less. The
# objects hold no machine code, so every program is compiled again when it is linked, which takes a second or more.
# `make LTO=` builds without it, in build/plain.
LTO ?= $(if $(SAN),,-flto=auto)
FLAVOUR := $(if $(SAN),$(subst $(comma),-,$(SAN)),$(if $(LTO),release,plain))
B := build/$(FLAVOUR)
# Only the release build puts its programs in the top folder; every other build keeps them below build/.
BIN := $(if $(filter release,$(FLAVOUR)),,$(B)/)

COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)
OPT ?= $(if $(SAN),-O1,-O2) -g
WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wswitch-enum $(if $(CI),-Werror)
# What UBSan finds ends the program, so that a test fails.
RECOVER := $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
# What makes a mistake in memory harder to use (docs/security.md, "Hardened programs"), as far as this compiler and
# architecture have it. Sanitizers have checks of their own.
usable = $(shell for flag in $(1); do $(CC) -Werror $$flag -fsyntax-only -x c /dev/null 2>/dev/null && echo $$flag; done)
HARDEN := $(if $(SAN),,-fPIE $(if $(filter -O1 -O2 -O3 -Os,$(OPT)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3) \
	$(call usable,-fstack-protector-strong -fstack-clash-protection -fcf-protection -mbranch-protection=standard))
HARDEN_LINK := $(if $(SAN),,-pie -Wl,-z,relro,-z,now)
# libev's watchers are cast between types that share their first members.
CFLAGS_ALL := -std=gnu11 -D_GNU_SOURCE $(OPT) $(HARDEN) -fno-strict-aliasing $(WARN) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer $(RECOVER) -DRAMPART_TLS_KEY_LOG) -I. -pthread $(CFLAGS)
LDLIBS_ALL := -Wl,--as-needed,--build-id -lrdmacm -libverbs -lssl -lcrypto -lev -ljansson -lcurl -lseccomp -lz -lm -pthread $(LDFLAGS)

# A folder of sources is a static archive, build/<flavour>/<folder>/lib.a: a new file needs no list. What a program may
# use follows from which archives it links, and `make lint` checks it for each folder.
COMMON := $(patsubst %/,%,$(wildcard common/*/))
CLIENT := client
SERVER := server $(patsubst %/,%,$(wildcard server/*/))
LOADGEN := loadgen $(patsubst %/,%,$(wildcard loadgen/*/ loadgen/*/*/))
FOLDERS := $(COMMON) $(SERVER) $(CLIENT) client/cli $(LOADGEN)
objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1:%=%/*.c)))
archives = $(1:%=$(B)/%/lib.a)
# Archives need one another in no particular order.
link = $(CC) $(CFLAGS_ALL) $(HARDEN_LINK) $(LTO) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group
PROGRAMS := $(BIN)rdma_server $(BIN)rdma_client $(BIN)performance_test

prefix ?= /usr/local
sysconfdir ?= $(if $(filter /usr /usr/local,$(prefix)),/etc,$(prefix)/etc)
CLIENTS ?= 100

all: $(PROGRAMS)

help:
	@echo "make run               set up what is missing, build, ramp 10 and 100 clients (CLIENTS=N for more)"
	@echo "make check             set up what is missing, then the tests, but for those that take long"
	@echo "make check-quick       unit tests, options, structure, 10 and 100 clients and the refusals in a micro-VM: 1 to 4 minutes"
	@echo "make check-one T=NAME  the tests of one name, such as test_churn: unit tests and scripts"
	@echo "make                   build the three programs"
	@echo "make ledger            what an operation costs, counted: fails if it grew (docs/ledger.md); RECORD=1 records them"
	@echo "make check-unit        unit tests; SAN=thread with a sanitizer"
	@echo "make check-sanitizers  unit tests with AddressSanitizer and UBSan (clang)"
	@echo "make check-valgrind    some of the unit tests under valgrind, which sees memory that was never written"
	@echo "make check-soft-roce   tests over real Soft-RoCE, in a micro-VM where there is no RDMA device"
	@echo "make check-adversary   attacks and failures over Soft-RoCE that make check leaves out"
	@echo "make check-hosts       every way to run on several load hosts, and 50 losses at random: an hour"
	@echo "make check-processes   kills, stops, limits, clocks and devices that go, over Soft-RoCE and sockets: an hour"
	@echo "make check-faults      one call after the other fails in the programs, on fake devices, with sanitizers"
	@echo "make check-threads     the programs' threads on fake devices, with ThreadSanitizer: 1 min"
	@echo "make soak MINUTES=60   one server under random load and attacks, from a seed (SEED=n)"
	@echo "make record R=NAME     records the runs of which README and docs state figures, in results/NAME; without R all"
	@echo "                       of them, which takes hours; make check-ten-thousand only makes that run, and checks it"
	@echo "make fuzz SECONDS=60   fuzzing of what comes from peers and files, 60 s in all (clang)"
	@echo "make check-cluster     tests of what joins several hosts, on an etcd of this machine: 15 s"
	@echo "make check-bench       tests of what the comparisons read and compute"
	@echo "make check-report      tests of the report and of what runs leave (Node.js, chromium)"
	@echo "make check-docs        every option against docs/options.md and the man pages, figures of the pages against results/"
	@echo "make check-launchers   a run on several hosts, started by ssh, Slurm and mpirun; a server in a container (docs/launchers.md)"
	@echo "make check-package     the Debian packages: reproducible, lintian, installed, upgraded and purged in a clean system"
	@echo "make check-deploy      manifests and action of deploy/ against their schemas; the action's steps in a clean system"
	@echo "make bench-connect     compares making connections with cmtime and bare OpenSSL (docs/bench.md)"
	@echo "make bench-data        compares latency, message rate, bandwidth and CPU time with perftest"
	@echo "make man               man pages, and completion for bash and zsh, in $(B)/share"
	@echo "make certs             development CA and certificates in build/certs"
	@echo "make deps              install the packages that are missing"
	@echo "make lint              the structure of docs/architecture.md, cppcheck and clang-tidy over the sources"
	@echo "make install           into \$$(DESTDIR)\$$(prefix), by default $(prefix): programs, suites, man pages, completion, systemd unit;"
	@echo "                       and into \$$(sysconfdir), unless it is there: rampart/server.conf"
	@echo "make deb, make rpm     packages of this commit, in build/deb and build/rpm"
	@echo "make clean             remove build/ (but not the kernel package) and the programs"

deps:
	@scripts/install-deps

certs:
	@scripts/make-certs

# The packages come first: nothing can be compiled without them.
run:
	@scripts/install-deps
	@scripts/build $(BIN)rdma_server $(BIN)rdma_client $(BIN)performance_test
	@scripts/make-certs
	@$(or $(BIN),./)performance_test --clients $(CLIENTS) $(ARGS)

# For what runs the programs of the release build by their names.
need_release = $(if $(LTO),,$(error $@ runs the release build: leave out LTO= and SAN=))

check:
	$(need_release)
	@scripts/install-deps --tests
	@scripts/make-certs
	@scripts/check

check-quick:
	@scripts/install-deps --docs
	@scripts/make-certs
	@scripts/check --quick

check-docs: all man
	@status=0; \
	scripts/check-options $(or $(BIN),./) || status=1; \
	scripts/check-man $(or $(BIN),./) $(B)/share || status=1; \
	scripts/check-figures || status=1; \
	exit $$status

# T: a test's name, such as test_churn.
check-one:
	@scripts/install-deps --tests
	@scripts/make-certs
	@scripts/check --one '$(T)'

check-report: all
	@RAMPART_BIN=$(or $(BIN),./) tests/report/run build/report.tally

check-deploy:
	@scripts/install-deps --tests --packages
	@tests/deploy/run build/deploy.tally

record: $(B)/bench/tls_handshakes $(B)/bench/tls_bytes
record check-ten-thousand: all
	$(need_release)
	@scripts/make-certs
	scripts/record $(if $(filter check-%,$@),--check ten-thousand,$(R))

# cppcheck follows no system header; it needs these for their loop macros.
LINT_MACROS = $(shell printf '\043include <%s>\n' sys/queue.h jansson.h | $(CC) -M -E -x c - | tr ' ' '\n' | \
	grep -E '/(sys/queue|jansson)\.h$$')
# What clang-tidy's parser needs of the compiler's options; .clang-tidy has the checks. It counts on stderr what it left out.
TIDY_FLAGS = -std=gnu11 -D_GNU_SOURCE -fno-strict-aliasing -I. -DBUILD_COMMIT='""' -DBUILD_FLAGS='""'
lint: all
	@for p in cppcheck clang-tidy; do \
		command -v $$p >/dev/null || { echo "make lint: $$p is missing: install package $$p"; exit 3; }; \
	done
	scripts/check-structure $(B)
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
		$(LINT_MACROS:%=--include=%) --suppress=missingIncludeSystem -I. common server client loadgen tests/fuzz
	find common server client loadgen -name '*.c' | xargs -P $$(nproc) -n 8 sh -c \
		'clang-tidy --quiet "$$@" -- $(subst ','\'',$(TIDY_FLAGS)) 2>>$(B)/clang-tidy.log' clang-tidy

# Man pages and completion come from what the programs print, so that neither is written by hand.
man: $(B)/share.made
$(B)/share.made: $(PROGRAMS) docs/options.md $(addprefix scripts/,make-man softroce lib/man.awk lib/completion.awk)
	rm -rf $(B)/share
	scripts/make-man $(or $(BIN),./) $(B)/share
	touch $@

install: all man
	install -d $(DESTDIR)$(prefix)/bin
	install $(PROGRAMS) $(DESTDIR)$(prefix)/bin
	install -d $(DESTDIR)$(prefix)/share/rampart/suites
	install -m 644 docs/suites/*.json $(DESTDIR)$(prefix)/share/rampart/suites
	install -d $(DESTDIR)$(prefix)/share/rampart/monitoring
	install -m 644 deploy/prometheus/rampart.rules.yml deploy/grafana/rampart.json $(DESTDIR)$(prefix)/share/rampart/monitoring
	install -d $(DESTDIR)$(prefix)/lib/systemd/system
	sed 's|=/usr/bin/|=$(prefix)/bin/|; s|/etc/rampart/|$(sysconfdir)/rampart/|' deploy/systemd/rampart-server.service \
		>$(DESTDIR)$(prefix)/lib/systemd/system/rampart-server.service
	install -d $(DESTDIR)$(sysconfdir)/rampart
	[ -e $(DESTDIR)$(sysconfdir)/rampart/server.conf ] || \
		install -m 644 deploy/systemd/server.conf $(DESTDIR)$(sysconfdir)/rampart
	find $(B)/share -type f ! -name "softroce.*" -printf '%P\n' | xargs -I{} install -D -m 644 $(B)/share/{} $(DESTDIR)$(prefix)/share/{}

deb rpm:
	@scripts/install-deps --packages
	@scripts/make-packages $@

check-package:
	@scripts/install-deps --packages
	@tests/package/test_package.sh build/package.tally

clean:
	rm -rf build/release build/plain build/address-undefined build/thread build/fuzz build/certs build/report-tests build/report-shots
	rm -f rdma_server rdma_client performance_test $(PROGRAMS) build/*.log build/*.tally
	rm -rf tests/report/node_modules tests/deploy/node_modules build/deploy-check build/launchers

# The folder itself is there so that an archive does not keep a file that was removed.
define folder_archive
$(B)/$(1)/lib.a: $(call objects,$(1)) $(1)
	@rm -f $$@
	$$(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach f,$(FOLDERS),$(eval $(call folder_archive,$(f))))

$(BIN)rdma_server: $(B)/server/main.o $(call archives,$(SERVER) $(COMMON))
$(BIN)rdma_client: $(B)/client/cli/main.o $(call archives,client/cli $(CLIENT) $(COMMON))
$(BIN)performance_test: $(B)/loadgen/main.o $(call archives,$(LOADGEN) $(CLIENT) $(COMMON))
$(PROGRAMS):
	$(link) $(LDLIBS_ALL)

$(B)/common/base/build_info.o: BUILD_DEFS = -DBUILD_COMMIT='"$(COMMIT)"' -DBUILD_FLAGS='"$(OPT) $(LTO)"'
# Built again when the commit changes, so that results never name an old one.
$(B)/common/base/build_info.o: $(B)/commit-$(COMMIT)
$(B)/commit-$(COMMIT):
	@mkdir -p $(@D)
	@rm -f $(B)/commit-*
	@touch $@

# A change of these flags rebuilds everything. The recorded flags are removed while the Makefile is read, so that `make -n` shows
# the rebuild.
FLAGS := $(strip $(OPT) $(HARDEN) $(LTO))
ifneq ($(file <$(B)/flags),$(FLAGS))
$(shell rm -f $(B)/flags)
endif
$(B)/flags:
	@mkdir -p $(@D) && echo '$(FLAGS)' >$@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LTO) $(BUILD_DEFS) -MMD -MP -c -o $@ $<

include tests/tests.mk tests/soft_roce/soft_roce.mk tests/bench/bench.mk tests/fuzz/fuzz.mk tests/faults/faults.mk tests/cluster/cluster.mk tests/ledger/ledger.mk

-include $(wildcard $(patsubst %,$(B)/%/*.d,$(FOLDERS)))
.PHONY: all help deps certs run check check-one check-quick check-deploy check-docs check-package check-report check-ten-thousand lint install man deb clean record rpm

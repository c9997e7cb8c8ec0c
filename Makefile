# rampart: builds rdma_server, rdma_client and performance_test. `make help` lists the targets.

CC ?= gcc
comma := ,
FLAVOUR := $(if $(SAN),$(subst $(comma),-,$(SAN)),release)
B := build/$(FLAVOUR)
# With a sanitizer the programs stay below build/, so that they are not taken for the real ones.
BIN := $(if $(SAN),$(B)/,)

COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)
OPT ?= -O2 -g
# Across files: a message passes many small functions of several, and a round trip takes a tenth less. The objects are
# good without it too: that is how tests use them.
LTO ?= $(if $(SAN),,-flto=auto)
WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wswitch-enum $(if $(CI),-Werror)
# libev's watchers are cast between types that share their first members.
CFLAGS_ALL := -std=gnu11 -D_GNU_SOURCE $(OPT) -fno-strict-aliasing $(WARN) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) -I. -pthread $(CFLAGS)
LDLIBS_ALL := -lrdmacm -libverbs -lssl -lcrypto -lev -ljansson -lz -lm -pthread $(LDFLAGS)

COMMON := addr arena auth build_info cm dev ep fail fail_table frame hist hist_io hist_read json_at latency_json log msg msg_tag opts opts_value \
	paths psn pump qp_pool rails rc region res ticket_keys tls tls_socket tuning
CLIENT := boot conn control ctx data rdma resolve
LOADGEN := breaking capacity churn compare config connect environment find lanes launch main memory open_loop pace payload progress ramp ramp_next ramp_run ramp_util results \
	rma run run_json schedule server_proc slo step step_files step_json stop stripe summary trace traffic verdict wl_atomic wl_connect wl_duplex wl_echo wl_idle wl_large \
	wl_mixed wl_pingpong wl_read wl_small wl_write worker workload
ANALYSIS := baseline curve differences knee limits plan read stats usl
REPORT := bars chart chart_layout chart_run chart_scale chart_script chart_svg command doc doc_csv doc_files doc_html doc_markdown doc_read doc_text found page points \
	report sections_answers sections_baseline sections_connect sections_failures sections_latency sections_load sections_origin sections_plan \
	sections_resources sections_verdict source style trend utf8
SERVER := boot config conn control echo limits listen main probe rdma session shard stats

COMMON_O := $(COMMON:%=$(B)/common/%.o)
CLIENT_O := $(CLIENT:%=$(B)/client/%.o)
RDMA_CLIENT_O := $(B)/client/main.o $(B)/client/commands.o
ANALYSIS_O := $(ANALYSIS:%=$(B)/loadgen/analysis/%.o)
LOADGEN_O := $(LOADGEN:%=$(B)/loadgen/%.o) $(ANALYSIS_O)
REPORT_O := $(REPORT:%=$(B)/loadgen/report/%.o)
SERVER_O := $(SERVER:%=$(B)/server/%.o)
PROGRAMS := $(BIN)rdma_server $(BIN)rdma_client $(BIN)performance_test

prefix ?= /usr/local
CLIENTS ?= 100

all: $(PROGRAMS)

help:
	@echo "make run               set up what is missing, build, ramp 10 and 100 clients (CLIENTS=N for more)"
	@echo "make check             set up what is missing, then every test"
	@echo "make                   build the three programs"
	@echo "make check-unit        unit tests; SAN=address,undefined or SAN=thread with sanitizers"
	@echo "make check-soft-roce   tests over real Soft-RoCE, in a micro-VM where there is no RDMA device"
	@echo "make check-bench       tests of what the comparisons read and compute"
	@echo "make check-report      tests of the report and of what runs leave (Node.js, chromium)"
	@echo "make check-docs        every option against README.md and docs/options.md"
	@echo "make bench-connect     compares making connections with cmtime and bare OpenSSL (docs/bench.md)"
	@echo "make bench-data        compares latency, message rate, bandwidth and CPU time with perftest"
	@echo "make certs             development CA and certificates in build/certs"
	@echo "make deps              install the packages that are missing"
	@echo "make lint              cppcheck over the sources"
	@echo "make install           into \$$(DESTDIR)\$$(prefix)/bin, by default $(prefix)/bin"
	@echo "make clean             remove build/ (but not the kernel package) and the programs"

deps:
	@scripts/install-deps

certs:
	@scripts/make-certs

# The packages come first: nothing can be compiled without them. 1 is "a criterion failed", which the
# verdict explains and which emulated CPUs do honestly; the run itself went well.
run:
	@scripts/install-deps
	@$(MAKE) --no-print-directory -s all
	@scripts/make-certs
	@./performance_test --clients $(CLIENTS) $(ARGS); status=$$?; [ $$status -eq 1 ] || exit $$status

check:
	@scripts/install-deps --tests
	@$(MAKE) --no-print-directory -s all
	@scripts/make-certs
	@scripts/check

check-docs: all
	@scripts/check-options

check-report: all
	@RAMPART_BIN=$(or $(BIN),./) tests/report/run build/report.tally

lint:
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
		--suppress=missingIncludeSystem -I. common server client loadgen

install: all
	install -d $(DESTDIR)$(prefix)/bin
	install $(PROGRAMS) $(DESTDIR)$(prefix)/bin

clean:
	rm -rf build/release build/address-undefined build/thread build/certs build/report-tests build/report-shots $(PROGRAMS)
	rm -rf tests/report/node_modules

PROGRAM_O := $(sort $(COMMON_O) $(CLIENT_O) $(RDMA_CLIENT_O) $(LOADGEN_O) $(REPORT_O) $(SERVER_O))
$(PROGRAM_O): LTO_OBJECT = $(if $(LTO),$(LTO) -ffat-lto-objects)

$(BIN)rdma_server: $(COMMON_O) $(SERVER_O)
	$(CC) $(CFLAGS_ALL) $(LTO) -o $@ $^ $(LDLIBS_ALL)

$(BIN)performance_test: $(COMMON_O) $(CLIENT_O) $(LOADGEN_O) $(REPORT_O)
	$(CC) $(CFLAGS_ALL) $(LTO) -o $@ $^ $(LDLIBS_ALL)

$(BIN)rdma_client: $(COMMON_O) $(CLIENT_O) $(RDMA_CLIENT_O)
	$(CC) $(CFLAGS_ALL) $(LTO) -o $@ $^ $(LDLIBS_ALL)

$(B)/common/build_info.o: BUILD_DEFS = -DBUILD_COMMIT='"$(COMMIT)"' -DBUILD_FLAGS='"$(OPT) $(LTO)"'
# Built again when the commit changes, so that results never name an old one.
$(B)/common/build_info.o: $(B)/commit-$(COMMIT)
$(B)/commit-$(COMMIT):
	@mkdir -p $(@D)
	@rm -f $(B)/commit-*
	@touch $@

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LTO_OBJECT) $(BUILD_DEFS) -MMD -MP -c -o $@ $<

-include tests/loadgen.mk
include tests/tests.mk tests/soft_roce/soft_roce.mk tests/bench/bench.mk

-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)
.PHONY: all help deps certs run check check-docs check-report lint install clean

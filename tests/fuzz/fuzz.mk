# Coverage-guided fuzzing with clang's libFuzzer, included by the top Makefile: each fuzz_*.c here is a program.
#
#   make fuzz SECONDS=n      runs all of them, n seconds of all processors in all (tests/fuzz/run)
#   make check-sanitizers    the unit tests with the sanitizers of the same build, which then is compiled once, for
#                            make check-faults (tests/faults/faults.mk), too

SECONDS ?= 60
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BINARIES := $(FUZZ_SOURCES:%.c=$(B)/%)
# A number that does not fit into the type it is cast to is found too: they come from files and from peers.
FUZZ_SAN := fuzzer-no-link,address,undefined,float-cast-overflow

$(B)/tests/fuzz/fuzz_boot: $(call archives,$(UNIT_HELPERS) $(SERVER) $(COMMON))
$(filter-out %/fuzz_boot,$(FUZZ_BINARIES)): $(call archives,tests/unit/fakes $(LOADGEN) $(CLIENT) server/config $(COMMON))
$(FUZZ_BINARIES): %: %.o $(B)/tests/fuzz/json_mutate.o
	$(link) -fsanitize=fuzzer $(driven) $(UNIT_LDLIBS)

fuzz-targets: $(FUZZ_BINARIES)

FUZZ_MAKE = +@tests/fuzz/run --check && $(MAKE) --no-print-directory -s FLAVOUR=fuzz LTO= SAN=$(FUZZ_SAN) \
	CC="$(filter %ccache ccache,$(CC)) clang" CFLAGS="$(CFLAGS) -fno-sanitize-recover=all"

fuzz:
	$(FUZZ_MAKE) fuzz-targets
	@tests/fuzz/run $(SECONDS)

check-sanitizers:
	$(FUZZ_MAKE) check-unit

-include $(FUZZ_SOURCES:%.c=$(B)/%.d) $(B)/tests/fuzz/json_mutate.d
.PHONY: check-sanitizers fuzz fuzz-targets

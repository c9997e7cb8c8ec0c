# The fault sweep; the top Makefile includes this file. tests/faults/sweep runs the three programs on fake devices
# (tests/faults/wire.c) and makes one call fail (tests/faults/inject.c). Also tests/faults/threads.
#
#   make check-faults            with the build of make check-sanitizers (tests/fuzz/fuzz.mk)
#   make check-faults SAMPLE=30  one of 30 calls, chosen by a seed that is printed

F := $(B)/tests/faults
SAMPLE ?= 1
FAULT_PROGRAMS := $(addprefix $(F)/,rdma_server rdma_client performance_test)
FAULT_WRAPS = $(shell sed -n 's/^WRAP.[A-Z_]*, [^,]*, \([a-zA-Z0-9_]*\),.*/-Wl,--wrap=\1/p' tests/faults/inject.c)

# A separate library, so that the fakes' own calls do not fail.
$(F)/lib/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -fPIC -MMD -MP -c -o $@ $<
$(F)/libfakes.so: $(patsubst %.c,$(F)/lib/%.o,$(wildcard tests/unit/fakes/*.c) common/base/addr.c tests/faults/wire.c)
	$(CC) $(CFLAGS_ALL) -shared -o $@ $^ -lcmocka -pthread

$(F)/rdma_server: $(B)/server/main.o $(call archives,$(SERVER) $(COMMON))
$(F)/rdma_client: $(B)/client/cli/main.o $(call archives,client/cli $(CLIENT) $(COMMON))
$(F)/performance_test: $(B)/loadgen/main.o $(call archives,$(LOADGEN) $(CLIENT) $(COMMON))
$(FAULT_PROGRAMS): $(F)/inject.o $(F)/libfakes.so
	$(link) $(FAULT_WRAPS) -L$(F) -lfakes -Wl,-rpath,'$$ORIGIN' $(filter-out -lrdmacm -libverbs,$(LDLIBS_ALL))

fault-programs: $(FAULT_PROGRAMS)

check-faults:
	$(FUZZ_MAKE) fault-programs
	@scripts/make-certs
	@TALLY=build/faults.tally tests/faults/sweep --sample $(SAMPLE) build/fuzz/tests/faults

# Runs all threads of the three programs under ThreadSanitizer.
check-threads:
	@$(MAKE) --no-print-directory -s SAN=thread LTO= fault-programs build/thread/tests/adversary/stats
	@scripts/make-certs
	@RAMPART_B=build/thread tests/faults/threads build/thread/tests/faults

-include $(wildcard $(F)/*.d $(F)/lib/*/*/*.d $(F)/lib/*/*/*/*.d)
.PHONY: fault-programs check-faults check-threads

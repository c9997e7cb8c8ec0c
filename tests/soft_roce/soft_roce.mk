# Tests over real RDMA connections (Soft-RoCE or a device). Included by the top Makefile, which defines
# B, BIN, CC, CFLAGS_ALL, LDLIBS_ALL, COMMON_O, CLIENT_O and the rule for objects.

ROGUE := link rogue rogue_boot rogue_link rogue_region wire
ROGUE_O := $(ROGUE:%=$(B)/tests/soft_roce/%.o)
SOFT_ROCE_PROGRAMS := $(B)/tests/soft_roce/rogue $(B)/tests/soft_roce/stats
# Where the number of checks passed, failed and skipped goes.
SOFT_ROCE_TOTALS ?= $(B)/tests/soft_roce/totals

$(B)/tests/soft_roce/rogue: $(COMMON_O) $(ROGUE_O)
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/tests/soft_roce/stats: $(COMMON_O) $(CLIENT_O) $(B)/tests/soft_roce/stats.o
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

check-soft-roce: all $(SOFT_ROCE_PROGRAMS)
	scripts/make-certs
	tests/soft_roce/make-test-certs $(B)/tests/soft_roce/certs
	RAMPART_BIN=$(or $(BIN),./) RAMPART_B=$(B) tests/soft_roce/run.sh $(SOFT_ROCE_TOTALS)

.PHONY: check-soft-roce

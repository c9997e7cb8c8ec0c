# Tests over real RDMA connections (Soft-RoCE or a device). Included by the top Makefile, which defines
# B, BIN, CC, CFLAGS_ALL, LDLIBS_ALL, COMMON_O, CLIENT_O and the rule for objects.

SOFT_ROCE_rogue := $(COMMON:%=common/%) $(addprefix tests/soft_roce/,link rogue rogue_boot rogue_life \
	rogue_link rogue_push rogue_region wire)
SOFT_ROCE_impostor := $(COMMON:%=common/%) $(addprefix tests/soft_roce/,impostor link wire)
SOFT_ROCE_stats := $(COMMON:%=common/%) $(CLIENT:%=client/%) tests/soft_roce/stats
SOFT_ROCE_PROGRAMS := $(patsubst %,$(B)/tests/soft_roce/%,rogue impostor stats)
# Where the number of checks passed, failed and skipped goes.
SOFT_ROCE_TOTALS ?= $(B)/tests/soft_roce/totals

define soft_roce_program
$(B)/tests/soft_roce/$(1): $(SOFT_ROCE_$(1):%=$(B)/%.o)
	$$(CC) $$(CFLAGS_ALL) -o $$@ $$^ $$(LDLIBS_ALL)
endef
$(foreach p,rogue impostor stats,$(eval $(call soft_roce_program,$(p))))

check-soft-roce: all $(SOFT_ROCE_PROGRAMS)
	scripts/make-certs
	tests/soft_roce/make-test-certs $(B)/tests/soft_roce/certs
	RAMPART_BIN=$(or $(BIN),./) RAMPART_B=$(B) tests/soft_roce/run.sh $(SOFT_ROCE_TOTALS)

.PHONY: check-soft-roce

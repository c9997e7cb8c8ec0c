# Tests over real RDMA connections (Soft-RoCE or a device). Included by the top Makefile. The programs of
# tests/adversary/ link rampart's frames and verbs, but nothing of its server.

ADVERSARIES := $(patsubst %,$(B)/tests/adversary/%,rogue impostor relay stats)
# Where the number of checks passed, failed and skipped goes.
SOFT_ROCE_TOTALS ?= $(B)/tests/soft_roce/totals

$(eval $(call folder_archive,tests/adversary))
$(ADVERSARIES): %: %.o $(call archives,tests/adversary $(CLIENT) $(COMMON))
	$(link) $(LDLIBS_ALL)

-include $(wildcard $(B)/tests/adversary/*.d)

soft-roce-programs: $(ADVERSARIES)

# SOFT_ROCE_TESTS: which of tests/soft_roce/test_*.sh, all if there are none.
check-soft-roce: all soft-roce-programs
	scripts/make-certs
	tests/soft_roce/make-test-certs $(B)/tests/soft_roce/certs
	RAMPART_BIN=$(or $(BIN),./) RAMPART_B=$(B) tests/soft_roce/run.sh $(SOFT_ROCE_TOTALS) $(SOFT_ROCE_TESTS)

# Attacks and failures that `make check` leaves out, for they take ten minutes and more. Scripts in quotes share a
# micro-VM.
long_tests = $(patsubst test_%.sh,%,$(notdir $(wildcard $(1:%=%/test_long_*.sh))))
# ADVERSARY=attacks or wire: one of the two parts.
ADVERSARY ?= attacks wire
attacks = hosts sockets strangers "credits crowd certificates disk" stale breaks $(call long_tests,tests/soft_roce tests/adversary)
wire = $(call long_tests,tests/nodes)
check-adversary:
	@scripts/install-deps --tests
	$(MAKE) --no-print-directory check-soft-roce SOFT_ROCE_TESTS='$(foreach part,$(ADVERSARY),$(or $($(part)),$(error ADVERSARY: unknown part '$(part)' (allowed: attacks wire))))'

# Every way to run on several load hosts, and 50 losses at random (docs/cluster.md): an hour, and nothing beside it, for a
# lease is short.
check-hosts:
	@scripts/install-deps --tests
	$(MAKE) --no-print-directory check-soft-roce RAMPART_LANES=1 SOFT_ROCE_TESTS='$(call long_tests,tests/hosts)'

# Kills, stops, limits, clocks and devices that go: half an hour. Then kills, limits and devices that go with clients
# that connect out of band: twenty minutes. Then those that clients over sockets may meet, without a micro-VM: half an
# hour, too, for a server stands still for 90 s in them.
check-processes:
	@scripts/install-deps --tests
	$(MAKE) --no-print-directory check-soft-roce SOFT_ROCE_TESTS='$(call long_tests,tests/processes)'
	RAMPART_CONNECT=oob $(MAKE) --no-print-directory check-soft-roce \
		SOFT_ROCE_TESTS='long_device long_kill long_limits long_restart'
	for transport in tcp tls; do \
		RAMPART_TRANSPORT=$$transport $(MAKE) --no-print-directory check-soft-roce \
			SOFT_ROCE_TESTS='long_kill long_limits long_restart' || exit; \
	done

# Launchers of a run on several hosts (docs/launchers.md), on this machine; and a server in a container in a micro-VM, whose
# image is made first.
check-launchers: $(B)/tests/cluster/joiner
	@scripts/install-deps --launchers
	tests/launchers/make-image build/launchers
	$(MAKE) --no-print-directory check-soft-roce SOFT_ROCE_TESTS='"ssh mpirun slurm" container'

# One server under load and attack for so long; the actions follow from a seed, which is printed.
MINUTES ?= 60
soak: all soft-roce-programs
	scripts/make-certs
	@vm=; scripts/softroce status >/dev/null 2>&1 || vm='scripts/softroce vm --env RAMPART_BIN --env RAMPART_B --'; \
	RAMPART_BIN=$(or $(BIN),./) RAMPART_B=$(B) $$vm tests/soak/test_soak.sh $(MINUTES) $(SEED)

.PHONY: check-adversary check-hosts check-launchers check-processes check-soft-roce soak soft-roce-programs

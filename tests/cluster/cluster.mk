# Tests loadgen/cluster against a real etcd on this machine. Each test_*.c is a program. The top Makefile includes this.

CLUSTER_SOURCES := $(wildcard tests/cluster/test_*.c)
CLUSTER_BINARIES := $(CLUSTER_SOURCES:%.c=$(B)/%)

$(CLUSTER_BINARIES): %: %.o $(call archives,tests/unit/helpers tests/unit/files loadgen/cluster loadgen/cluster/etcd $(COMMON))
	$(link) -lcmocka $(LDLIBS_ALL)

cluster-tests: $(CLUSTER_BINARIES)

# test_etcd forks while the lease's thread runs, so ThreadSanitizer must not end the child.
check-cluster: $(CLUSTER_BINARIES)
	TSAN_OPTIONS=die_after_fork=0 TALLY=$(B)/cluster.tally tests/unit/run-unit $^

-include $(CLUSTER_SOURCES:%.c=$(B)/%.d)
.PHONY: cluster-tests check-cluster

# A host of a run without load whose clock a test can shift; test_joiners runs many of them.
$(B)/tests/cluster/joiner: $(B)/tests/cluster/joiner.o $(call archives,loadgen/cluster loadgen/cluster/etcd $(COMMON))
	$(link) -Wl,--wrap=clock_gettime $(LDLIBS_ALL)

$(B)/tests/cluster/test_joiners: | $(B)/tests/cluster/joiner
-include $(B)/tests/cluster/joiner.d

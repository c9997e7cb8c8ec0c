# Counts what operations cost (docs/ledger.md). The top Makefile includes this file.
#
#   make ledger            fails if a figure grew
#   make ledger RECORD=1   records the figures of this tree

$(B)/tests/ledger/libsteady.so: tests/ledger/steady.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin -fno-tree-loop-distribute-patterns $(WARN) -fPIC -shared -o $@ $< -ldl

ledger-programs: $(BIN)rdma_server $(BIN)rdma_client $(BIN)performance_test $(B)/tests/faults/libfakes.so $(B)/tests/ledger/libsteady.so

ledger: ledger-programs
	@scripts/make-certs
	@TALLY=build/ledger.tally RAMPART_BIN=$(or $(BIN),./) tests/limit 900 tests/ledger/ledger $(B) $(if $(RECORD),--record)

.PHONY: ledger ledger-programs

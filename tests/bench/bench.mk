# Comparisons with other programs (docs/bench.md). Included by the top Makefile, which defines B, CC,
# CFLAGS_ALL and the rule for objects. tls_handshakes is not rampart's: it links none of its objects.

BENCH_HANDSHAKES := $(B)/bench/tls_handshakes

$(BENCH_HANDSHAKES): $(B)/tests/bench/tls_handshakes.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -o $@ $^ -lssl -lcrypto -lev -ljansson $(LDFLAGS)

# The same set-up as for `make run`.
bench-connect:
	@scripts/install-deps
	@$(MAKE) --no-print-directory -s all $(BENCH_HANDSHAKES)
	@scripts/make-certs
	@scripts/bench-connect $(ARGS)

check-bench: $(BENCH_HANDSHAKES)
	@scripts/make-certs
	@RAMPART_B=$(B) TALLY=$(B)/bench.tally tests/bench/test_bench_connect.sh

.PHONY: bench-connect check-bench

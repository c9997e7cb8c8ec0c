# Comparisons with other programs (docs/bench.md). The top Makefile includes this file and defines B, CC, CFLAGS_ALL and
# the rule for objects. tls_handshakes and tls_bytes are not rampart's and link none of its objects.

BENCH_HANDSHAKES := $(B)/bench/tls_handshakes
BENCH_BYTES := $(B)/bench/tls_bytes

$(BENCH_HANDSHAKES): $(B)/tests/bench/tls_handshakes.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -o $@ $^ -lssl -lcrypto -lev -ljansson $(LDFLAGS)

$(BENCH_BYTES): $(B)/tests/bench/tls_bytes.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -o $@ $^ -lssl -lcrypto $(LDFLAGS)

# The same preparation as for `make run`.
bench-connect:
	$(need_release)
	@scripts/install-deps
	@scripts/build all $(BENCH_HANDSHAKES)
	@scripts/make-certs
	@scripts/bench-connect $(ARGS)

bench-data:
	$(need_release)
	@scripts/install-deps
	@scripts/build all $(BENCH_BYTES)
	@scripts/make-certs
	@scripts/bench-data $(ARGS)

# Adds the tallies of both scripts.
check-bench: $(BENCH_HANDSHAKES) $(BENCH_BYTES)
	@scripts/make-certs
	@rm -f $(B)/bench-*.tally $(B)/bench.tally
	@status=0; \
	for name in connect data; do \
		RAMPART_B=$(B) TALLY=$(B)/bench-$$name.tally tests/bench/test_bench_$$name.sh || status=1; \
	done; \
	[ -e $(B)/bench-connect.tally ] && [ -e $(B)/bench-data.tally ] && \
		awk '{ p += $$1; f += $$2; s += $$3 } END { print p, f, s }' $(B)/bench-*.tally >$(B)/bench.tally && \
		exit $$status

.PHONY: bench-connect bench-data check-bench

# Comparisons with other programs (docs/bench.md). Included by the top Makefile, which defines B, CC,
# CFLAGS_ALL and the rule for objects. tls_handshakes is not rampart's: it links none of its objects.

BENCH_HANDSHAKES := $(B)/bench/tls_handshakes

$(BENCH_HANDSHAKES): $(B)/tests/bench/tls_handshakes.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -o $@ $^ -lssl -lcrypto -lev -ljansson $(LDFLAGS)

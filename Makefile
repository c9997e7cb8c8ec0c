# rampart: builds rdma_server, rdma_client and performance_test. `make help` lists the targets.

CC ?= gcc
FLAVOUR := $(if $(SAN),$(subst $(empty) ,-,$(subst $(comma),-,$(SAN))),release)
comma := ,
empty :=
B := build/$(FLAVOUR)
# With a sanitizer the programs stay below build/, so that they are not taken for the real ones.
BIN := $(if $(SAN),$(B)/,)

COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)
OPT ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wswitch-enum \
	$(if $(CI),-Werror)
# libev's watchers are cast between types that share their first members.
CFLAGS_ALL := -std=gnu11 -D_GNU_SOURCE $(OPT) -fno-strict-aliasing $(WARN) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) -I. -pthread $(CFLAGS)
LDLIBS_ALL := -lrdmacm -libverbs -lssl -lcrypto -lev -ljansson -lz -lm -pthread $(LDFLAGS)

COMMON := addr auth build_info cm dev ep fail fail_table frame hist hist_io latency_json log msg opts \
	paths psn pump qp_pool rc region res tls
CLIENT := boot conn control ctx data rdma resolve
LOADGEN := config environment launch main payload progress ramp report results server_proc step verdict \
	worker
SERVER := boot config conn control echo limits main rdma session shard stats

COMMON_O := $(COMMON:%=$(B)/common/%.o)
CLIENT_O := $(CLIENT:%=$(B)/client/%.o)
RDMA_CLIENT_O := $(B)/client/main.o $(B)/client/commands.o
LOADGEN_O := $(LOADGEN:%=$(B)/loadgen/%.o)
SERVER_O := $(SERVER:%=$(B)/server/%.o)

all: $(BIN)rdma_server $(BIN)rdma_client $(BIN)performance_test

$(BIN)rdma_server: $(COMMON_O) $(SERVER_O)
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(BIN)performance_test: $(COMMON_O) $(CLIENT_O) $(LOADGEN_O)
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(BIN)rdma_client: $(COMMON_O) $(CLIENT_O) $(RDMA_CLIENT_O)
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/common/build_info.o: BUILD_DEFS = -DBUILD_COMMIT='"$(COMMIT)"' -DBUILD_FLAGS='"$(OPT)"'

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(BUILD_DEFS) -MMD -MP -c -o $@ $<

-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)
.PHONY: all

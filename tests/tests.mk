# Unit tests, included by the top Makefile: one binary per module below $(B)/tests/unit, linked from
# exactly the objects named here; the fakes take the place of -lrdmacm and -libverbs.

UNIT_FAKES := $(patsubst %,tests/unit/fakes/fake_%,core queues rdmacm verbs)
UNIT_COMMON := $(COMMON:%=common/%) $(UNIT_FAKES)
UNIT_CLIENT := $(UNIT_COMMON) $(CLIENT:%=client/%) $(patsubst %,tests/unit/helpers/%,certs client_rig)
UNIT_SERVER := $(UNIT_COMMON) $(filter-out server/main,$(SERVER:%=server/%)) \
	$(patsubst %,tests/unit/helpers/%,certs server_peer server_rig)
UNIT_VERBS := common/addr common/cm common/ep common/log common/qp_pool common/rc common/region \
	common/dev tests/unit/helpers/verbs_rig $(UNIT_FAKES)

UNIT_test_addr := common/addr
UNIT_test_arena := $(UNIT_VERBS) common/arena
UNIT_test_auth := common/addr common/auth
UNIT_test_cm := $(UNIT_VERBS)
UNIT_test_cm_path := $(UNIT_VERBS)
UNIT_test_client_boot := $(UNIT_CLIENT)
UNIT_test_client_conn := $(UNIT_CLIENT)
UNIT_test_client_control := $(UNIT_CLIENT)
UNIT_test_client_park := $(UNIT_CLIENT)
UNIT_test_client_rdma := $(UNIT_CLIENT)
UNIT_test_client_session := $(UNIT_CLIENT)
UNIT_test_dev := common/addr common/dev common/log $(UNIT_FAKES)
UNIT_test_ep := $(UNIT_VERBS)
UNIT_test_fail := common/fail common/fail_table common/frame common/addr
UNIT_test_frame := common/addr common/frame
UNIT_test_hist := common/hist
UNIT_test_hist_io := common/hist common/hist_io
UNIT_test_hist_read := common/hist common/hist_io common/hist_read
UNIT_test_latency_json := common/hist common/latency_json
UNIT_test_limits := server/limits common/tuning
UNIT_test_log := common/log
UNIT_test_msg := common/msg
UNIT_test_msg_tag := common/msg_tag
UNIT_test_opts := common/opts common/opts_value
UNIT_test_psn := common/psn
UNIT_test_pump := $(UNIT_VERBS) common/pump
UNIT_test_qp_pool := $(UNIT_VERBS)
UNIT_test_qp_pool_stock := $(UNIT_VERBS)
UNIT_test_rails := common/rails
UNIT_test_rc := $(UNIT_VERBS)
UNIT_test_region := $(UNIT_VERBS)
UNIT_test_res := common/res
UNIT_test_server_config := $(UNIT_COMMON) server/config
UNIT_test_server_boot := $(UNIT_SERVER)
UNIT_test_server_conn := $(UNIT_SERVER)
UNIT_test_server_control := $(UNIT_SERVER)
UNIT_test_server_echo := $(UNIT_SERVER)
UNIT_test_server_push := $(UNIT_SERVER)
UNIT_test_server_rdma := $(UNIT_SERVER)
UNIT_test_server_resume := $(UNIT_SERVER)
UNIT_test_server_shard := $(UNIT_SERVER)
UNIT_test_session := server/session
UNIT_test_ticket_keys := common/ticket_keys
UNIT_test_tls := common/tls common/tls_socket common/ticket_keys common/fail common/frame common/addr \
	tests/unit/helpers/certs
UNIT_test_tls_socket := common/tls_socket
UNIT_test_tuning := common/tuning

# The shard's loop is driven by the test, not by a thread.
UNIT_DRIVEN := -Wl,--wrap=pthread_create,--wrap=pthread_join

UNIT_TESTS := $(patsubst UNIT_test_%,test_%,$(filter UNIT_test_%,$(.VARIABLES)))
UNIT_TESTS := $(sort $(UNIT_TESTS))
UNIT_BINARIES := $(UNIT_TESTS:%=$(B)/tests/unit/%)
UNIT_LDLIBS := -lcmocka $(filter-out -lrdmacm -libverbs,$(LDLIBS_ALL))

define unit_objects
$(B)/tests/unit/$(1): $(patsubst %,$(B)/%.o,tests/unit/$(1) $(UNIT_$(1)))
endef
$(foreach t,$(UNIT_TESTS),$(eval $(call unit_objects,$(t))))

$(UNIT_BINARIES):
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(if $(filter %/server_rig.o,$^),$(UNIT_DRIVEN)) $(UNIT_LDLIBS)

unit-tests: $(UNIT_BINARIES)

check-unit: $(UNIT_BINARIES)
	TALLY=$(B)/unit.tally tests/unit/run-unit $^

-include $(wildcard $(B)/tests/unit/*/*.d)
.PHONY: unit-tests check-unit

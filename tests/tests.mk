# Unit tests, included by the top Makefile: each test_*.c below tests/unit is a program, linked from the archives of
# the part of the tree it is in. The fakes take the place of -lrdmacm and -libverbs. What a test defines itself comes
# before what is in an archive.

UNIT_SOURCES := $(wildcard $(addprefix tests/unit/,*/test_*.c */*/test_*.c */*/*/test_*.c))
UNIT_BINARIES := $(UNIT_SOURCES:%.c=$(B)/%)
UNIT_HELPERS := tests/unit/helpers tests/unit/files tests/unit/fakes
UNIT_LDLIBS := -lcmocka $(filter-out -lrdmacm -libverbs,$(LDLIBS_ALL))
$(foreach f,$(UNIT_HELPERS),$(eval $(call folder_archive,$(f))))

# unit_part FOLDER,FOLDERS LINKED
define unit_part
$(filter $(B)/tests/unit/$(1)/%,$(UNIT_BINARIES)): $(call archives,$(UNIT_HELPERS) $(2))
endef
$(eval $(call unit_part,common,$(COMMON)))
$(eval $(call unit_part,client,client/cli $(CLIENT) $(COMMON)))
$(eval $(call unit_part,server,$(SERVER) $(COMMON)))
$(eval $(call unit_part,loadgen,$(LOADGEN) $(CLIENT) $(COMMON)))
$(eval $(call unit_part,both,$(SERVER) $(LOADGEN) $(CLIENT) $(COMMON)))

# The shard's loop is driven by the tests that use the rig, not by a thread.
driven = $(if $(shell grep -l helpers/server_rig.h $(@:$(B)/%=%.c)),-Wl$(comma)--wrap=pthread_create$(comma)--wrap=pthread_join$(comma)--wrap=getsockopt)

# Tests in which memory runs out have a malloc of their own.
short_of_memory = $(if $(shell grep -l __wrap_malloc $(@:$(B)/%=%.c)),-Wl$(comma)--wrap=malloc)

# What is tested is optimised as ever with sanitizers; a test itself compiles in half the time without.
ifneq ($(SAN),)
$(UNIT_BINARIES:=.o): CFLAGS_ALL += -O0
endif

$(UNIT_BINARIES): %: %.o
	$(link) $(driven) $(short_of_memory) $(UNIT_LDLIBS)

# Unit tests are built with -O1 and without link-time optimisation: otherwise compiling takes longer than running them.
ifneq ($(LTO),)
unit-tests check-unit check-valgrind:
	+@$(MAKE) --no-print-directory LTO= OPT='-O1 -g' $@
else
unit-tests: $(UNIT_BINARIES)

# Start those that compute for many seconds first, so that they do not run alone at the end.
LONG_UNITS := %/test_step_pack %/test_damaged %/test_ticket_keys
check-unit: $(UNIT_BINARIES)
	TSAN_OPTIONS=suppressions=tests/unit/tsan.supp TALLY=$(B)/unit.tally \
		tests/unit/run-unit $(filter $(LONG_UNITS),$^) $(filter-out $(LONG_UNITS),$^)

# What decodes bytes and what talks TLS: memory that was never written is seen by no sanitizer that gcc has.
VALGRIND_UNITS := $(filter $(addprefix $(B)/tests/unit/,common/wire/% common/hist/test_hist_read common/hist/test_hist_io \
	common/tls/% client/test_boot server/shard/test_boot server/shard/test_grant server/shard/test_accept server/test_control),$(UNIT_BINARIES))
check-valgrind: $(VALGRIND_UNITS)
	TALLY=$(B)/valgrind.tally LIMIT_S=600 tests/unit/run-unit --under \
		"valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite" $^
endif

-include $(UNIT_SOURCES:%.c=$(B)/%.d) $(wildcard $(UNIT_HELPERS:%=$(B)/%/*.d))
.PHONY: unit-tests check-unit check-valgrind

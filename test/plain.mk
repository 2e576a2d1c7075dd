# The plain-C rungs: they build without PostgreSQL, are tested under sanitizers and fuzzed alone.
#
#   make plain       compile src/core, src/binlog, src/ddl, src/format with the strictest warnings
#   make test-unit   unit and golden tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make fuzz        fuzz every decoder (FUZZ_RUNS, CDC_FUZZ_INPUTS, CDC_FUZZ_SECONDS, FUZZ_SEED); make fuzz-json: one
#
# Everything that is built goes below build/. Needs libdeflate and libzstd, and zlib as a second opinion in the tests; prove for test-unit; clang for fuzz.

PLAIN_DIRS   := src/core src/binlog src/ddl src/format
PLAIN_CC     ?= cc
PLAIN_CFLAGS ?= -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror
PLAIN_OPT    ?= -O2 -g
PLAIN_LIBS   := -ldeflate -lz -lzstd

PLAIN_SRC    := $(wildcard $(addsuffix /*.c,$(PLAIN_DIRS)))
PLAIN_OUT    := build/plain
PLAIN_OBJ    := $(PLAIN_SRC:%.c=$(PLAIN_OUT)/%.o)

ASAN_FLAGS   := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
ASAN_OUT     := build/plain-asan
ASAN_OBJ     := $(PLAIN_SRC:%.c=$(ASAN_OUT)/%.o)
TEST_SRC     := $(wildcard test/unit/test_*.c)
TEST_HELP    := $(filter-out $(TEST_SRC),$(wildcard test/unit/*.c))
TEST_HELP_O  := $(TEST_HELP:%.c=$(ASAN_OUT)/%.o)
TEST_BIN     := $(TEST_SRC:test/unit/%.c=$(ASAN_OUT)/%)

.PHONY: plain test-unit fuzz $(patsubst test/fuzz/fuzz_%.c,fuzz-%,$(wildcard test/fuzz/fuzz_*.c))

plain: $(PLAIN_OUT)/libplain.a

$(PLAIN_OUT)/libplain.a: $(PLAIN_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(PLAIN_OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(PLAIN_CC) $(PLAIN_CFLAGS) $(PLAIN_OPT) -fPIC -Isrc -MMD -MP -c -o $@ $<

$(ASAN_OUT)/libplain.a: $(ASAN_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(ASAN_OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(PLAIN_CC) $(PLAIN_CFLAGS) $(ASAN_FLAGS) -Isrc -Itest/unit -MMD -MP -c -o $@ $<

$(ASAN_OUT)/test_%: $(ASAN_OUT)/test/unit/test_%.o $(TEST_HELP_O) $(ASAN_OUT)/libplain.a
	$(PLAIN_CC) $(ASAN_FLAGS) -o $@ $^ $(PLAIN_LIBS) -lm

$(ASAN_OUT)/dump_events: $(ASAN_OUT)/test/golden/dump_events.o $(TEST_HELP_O) $(ASAN_OUT)/libplain.a
	$(PLAIN_CC) $(ASAN_FLAGS) -o $@ $^ $(PLAIN_LIBS) -lm

# The tests find their data by paths from the top of the tree.
test-unit: $(TEST_BIN) $(ASAN_OUT)/dump_events
	prove --exec '' $(TEST_BIN)

# Fuzzing: one target per decoder, test/fuzz/fuzz_<decoder>.c with its corpus in test/fuzz/corpus/<decoder>. The corpus
# in the tree is only read; what a run finds goes to build/fuzz: log.<decoder>, corpus/<decoder>, and an input that breaks
# something as <decoder>-crash-..., with the line that runs it again.
FUZZ_CC      ?= $(firstword $(foreach c,clang clang-14 clang-19 clang-18 clang-17 clang-16 clang-15,$(shell command -v $(c))))
FUZZ_FLAGS   := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_OUT     := build/fuzz
FUZZ_OBJ     := $(PLAIN_SRC:%.c=$(FUZZ_OUT)/%.o)
FUZZ_NAMES   := $(sort $(patsubst test/fuzz/fuzz_%.c,%,$(wildcard test/fuzz/fuzz_*.c)))
FUZZ_BIN     := $(FUZZ_NAMES:%=$(FUZZ_OUT)/fuzz_%)

# How long. FUZZ_RUNS: inputs for each target; CDC_FUZZ_INPUTS: for all together, of which the slow ones get a twentieth
# each and the others share the rest; CDC_FUZZ_SECONDS: time for each target, which run side by side under -j.
FUZZ_RUNS    ?= 20000
FUZZ_SLOW    := $(filter reader values statement json gtid payload,$(FUZZ_NAMES))
FUZZ_MORE     = $(shell expr $(CDC_FUZZ_INPUTS) / 20)
FUZZ_REST     = $(shell expr \( $(CDC_FUZZ_INPUTS) - $(words $(FUZZ_SLOW)) \* $(FUZZ_MORE) \) / $(words $(filter-out $(FUZZ_SLOW),$(FUZZ_NAMES))) + 1)
FUZZ_LIMIT    = $(if $(CDC_FUZZ_INPUTS),-runs=$(if $(filter $(1),$(FUZZ_SLOW)),$(FUZZ_MORE),$(FUZZ_REST)),$(if $(CDC_FUZZ_SECONDS),-max_total_time=$(CDC_FUZZ_SECONDS),-runs=$(FUZZ_RUNS)))
FUZZ_SEED    ?= $(shell date +%s)
FUZZ_SEED    := $(FUZZ_SEED)

fuzz: $(FUZZ_NAMES:%=fuzz-%)
	@cat $(FUZZ_NAMES:%=$(FUZZ_OUT)/log.%) | awk '/^stat::number_of_executed_units:/ { n += $$2 } END { print "fuzz: " n " inputs over $(words $(FUZZ_NAMES)) targets, nothing found" }'

# One target: make fuzz-json
$(FUZZ_NAMES:%=fuzz-%): fuzz-%: $(FUZZ_OUT)/fuzz_%
	@mkdir -p $(FUZZ_OUT)/corpus/$* test/fuzz/corpus/$*
	@$(FUZZ_OUT)/fuzz_$* -seed=$(FUZZ_SEED) $(call FUZZ_LIMIT,$*) -max_len=$(if $(filter reader,$*),65536,4096) -rss_limit_mb=1024 -timeout=20 \
	    -print_final_stats=1 -artifact_prefix=$(FUZZ_OUT)/$*- $(FUZZ_OUT)/corpus/$* test/fuzz/corpus/$* >$(FUZZ_OUT)/log.$* 2>&1 || { \
	    tail -n 60 $(FUZZ_OUT)/log.$*; \
	    echo "fuzz-$*: FOUND SOMETHING with seed $(FUZZ_SEED); again: $(FUZZ_OUT)/fuzz_$* $$(sed -n 's/.*Test unit written to //p' $(FUZZ_OUT)/log.$* | tail -n 1)"; exit 1; }
	@awk '/^stat::number_of_executed_units:/ { n = $$2 } /^stat::average_exec_per_sec:/ { s = $$2 } \
	    END { printf "fuzz-%-10s %8d inputs, %d per second (seed %s: make fuzz-%s FUZZ_SEED=%s)\n", "$*", n, s, "$(FUZZ_SEED)", "$*", "$(FUZZ_SEED)" }' $(FUZZ_OUT)/log.$*

$(FUZZ_BIN): $(FUZZ_OUT)/fuzz_%: $(FUZZ_OUT)/test/fuzz/fuzz_%.o $(FUZZ_OUT)/libplain.a
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(PLAIN_LIBS) -lm

$(FUZZ_OUT)/libplain.a: $(FUZZ_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(FUZZ_OUT)/%.o: %.c
	@test -n "$(FUZZ_CC)" || { echo "make: fuzzing needs clang" >&2; exit 1; }
	@mkdir -p $(@D)
	$(FUZZ_CC) $(PLAIN_CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -Isrc -Itest/fuzz -Itest/unit -MMD -MP -c -o $@ $<

# Objects of the tests are kept, so that a second run builds nothing.
.SECONDARY: $(TEST_SRC:%.c=$(ASAN_OUT)/%.o) $(ASAN_OUT)/test/golden/dump_events.o $(FUZZ_NAMES:%=$(FUZZ_OUT)/test/fuzz/fuzz_%.o)

-include $(PLAIN_OBJ:.o=.d) $(ASAN_OBJ:.o=.d) $(TEST_HELP_O:.o=.d) $(TEST_SRC:%.c=$(ASAN_OUT)/%.d) $(FUZZ_OBJ:.o=.d) \
    $(FUZZ_NAMES:%=$(FUZZ_OUT)/test/fuzz/fuzz_%.d)

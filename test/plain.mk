# The plain-C rungs: they build without PostgreSQL, are tested under sanitizers and fuzzed alone.
#
#   make plain       compile src/core, src/binlog, src/ddl with the strictest warnings
#   make test-unit   unit and golden tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make fuzz        fuzz the binary log reader (FUZZ_RUNS, CDC_FUZZ_SECONDS, FUZZ_SEED)
#
# Everything that is built goes below build/. Needs zlib and libzstd; prove for test-unit; clang for fuzz.

PLAIN_DIRS   := src/core src/binlog src/ddl
PLAIN_CC     ?= cc
PLAIN_CFLAGS ?= -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror
PLAIN_OPT    ?= -O2 -g
PLAIN_LIBS   := -lz -lzstd

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

.PHONY: plain test-unit fuzz

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

# The corpus in the tree is only read; what a run finds goes to build/fuzz.
FUZZ_CC      ?= $(firstword $(foreach c,clang clang-14 clang-19 clang-18 clang-17 clang-16 clang-15,$(shell command -v $(c))))
FUZZ_RUNS    ?= 20000
FUZZ_OUT     := build/fuzz
FUZZ_LIMIT   := $(if $(CDC_FUZZ_SECONDS),-max_total_time=$(CDC_FUZZ_SECONDS),-runs=$(FUZZ_RUNS))

fuzz: $(FUZZ_OUT)/fuzz_reader
	@mkdir -p $(FUZZ_OUT)/corpus/reader
	@seed=$${FUZZ_SEED:-$$(date +%s)}; echo "fuzz_reader: seed $$seed (run again with FUZZ_SEED=$$seed)"; \
	$(FUZZ_OUT)/fuzz_reader -seed=$$seed $(FUZZ_LIMIT) -max_len=65536 -rss_limit_mb=1024 -timeout=20 -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ_OUT)/ $(FUZZ_OUT)/corpus/reader test/fuzz/corpus/reader

$(FUZZ_OUT)/fuzz_reader: test/fuzz/fuzz_reader.c $(PLAIN_SRC) $(wildcard $(addsuffix /*.h,$(PLAIN_DIRS)))
	@test -n "$(FUZZ_CC)" || { echo "make: fuzzing needs clang" >&2; exit 1; }
	@mkdir -p $(@D)
	$(FUZZ_CC) $(PLAIN_CFLAGS) -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc \
	    -o $@ test/fuzz/fuzz_reader.c $(PLAIN_SRC) $(PLAIN_LIBS) -lm

# Objects of the tests are kept, so that a second run builds nothing.
.SECONDARY: $(TEST_SRC:%.c=$(ASAN_OUT)/%.o) $(ASAN_OUT)/test/golden/dump_events.o

-include $(PLAIN_OBJ:.o=.d) $(ASAN_OBJ:.o=.d) $(TEST_HELP_O:.o=.d) $(TEST_SRC:%.c=$(ASAN_OUT)/%.d)

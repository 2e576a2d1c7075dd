# The programs that `make bench` measures with; nothing of them is ever installed. Called by run with OUT (where they go) and
# PG_CONFIG.
#
#   decode      reads a server's binary log, with the extension's decoder and without
#   writer      inserts at a steady rate
#   direct.so   functions for PostgreSQL: the same changes by a plain loop over index and heap

OUT       ?= build/bench
PG_CONFIG ?= pg_config
TREE      := $(patsubst %/test/bench/,%,$(dir $(abspath $(firstword $(MAKEFILE_LIST)))))

ifndef BENCH_PGXS
# ------------------------------------------------------------------------------------------------- programs, from the tree

MYSQL_CFLAGS := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags libmariadb 2>/dev/null || mariadb_config --include))
MYSQL_LIBS   := $(shell pkg-config --libs libmariadb 2>/dev/null || mariadb_config --libs)
BENCH_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -pthread -MMD -MP -I$(TREE)/src
PG_MAJOR     := $(shell $(PG_CONFIG) --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')

DECODER_SRC := $(wildcard $(TREE)/src/core/*.c $(TREE)/src/binlog/*.c) $(TREE)/src/mysql/mysql_ring.c
DECODER_OBJ := $(DECODER_SRC:$(TREE)/%.c=$(OUT)/obj/%.o)

.PHONY: all
all: $(OUT)/decode $(OUT)/writer
	@mkdir -p $(OUT)/direct-pg$(PG_MAJOR)
	+@$(MAKE) --no-print-directory -C $(OUT)/direct-pg$(PG_MAJOR) -f $(TREE)/test/bench/programs.mk BENCH_PGXS=1 PG_CONFIG=$(PG_CONFIG) all

$(OUT)/decode: $(OUT)/obj/test/bench/decode.o $(DECODER_OBJ)
	$(CC) -pthread -o $@ $^ $(MYSQL_LIBS) -ldeflate -lzstd

$(OUT)/writer: $(OUT)/obj/test/bench/writer.o
	$(CC) -o $@ $^ $(MYSQL_LIBS)

$(OUT)/obj/%.o: $(TREE)/%.c
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) $(MYSQL_CFLAGS) -c -o $@ $<

-include $(DECODER_OBJ:.o=.d) $(OUT)/obj/test/bench/decode.d $(OUT)/obj/test/bench/writer.d

else
# ------------------------------------------------------------------------------------------- the module, in a folder of its own

MODULES     = direct
PG_CPPFLAGS = -I$(TREE)/src -isystem $(shell $(PG_CONFIG) --includedir-server)
PG_CFLAGS   = -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror
VPATH       = $(TREE)/test/bench
override with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

endif

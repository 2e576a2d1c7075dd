# cdc_bridge: change data capture between MySQL/MariaDB and PostgreSQL.
#
# This file has two halves. In the source tree it only hands on: every build happens in a directory of its own,
# build/pg<major> (or BUILD_DIR), so that builds for several PostgreSQL versions never share or overwrite an object file
# and may run side by side. Inside that directory the same file is read again and is an ordinary PGXS makefile (a
# "VPATH build").
#
#   make PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config && sudo make PG_CONFIG=... install
#
# Variables: PG_CONFIG, BUILD_DIR, MYSQL_CLIENT (libmariadb or mysqlclient), YAML (no: without libyaml), KAFKA (no: without librdkafka), WERROR (empty: warnings stay warnings).

PG_CONFIG ?= pg_config

TREE := $(patsubst %/,%,$(dir $(abspath $(firstword $(MAKEFILE_LIST)))))

ifeq ($(TREE),$(CURDIR))
# ---------------------------------------------------------------------------------------------- half 1: the source tree

.DEFAULT_GOAL := all

# Asked for only by the goals that need it: `make test` starts on a machine that has no pg_config yet.
PG_MAJOR   = $(shell $(PG_CONFIG) --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
BUILD_DIR ?= build/pg$(PG_MAJOR)

# (plain, test-unit and fuzz come from test/plain.mk)
.PHONY: all install uninstall test test-long lint bench demo demo-kafka demo-stop clean distclean indent help

all install uninstall:
	@$(PG_CONFIG) --version >/dev/null || { echo "make: set PG_CONFIG to the pg_config of the server to build for" >&2; exit 1; }
	@mkdir -p $(BUILD_DIR)
	+@$(MAKE) --no-print-directory -C $(BUILD_DIR) -f $(TREE)/Makefile $@

# The rungs below PostgreSQL (core, binlog, ddl, ...): plain C library, unit tests, golden logs, fuzz targets.
-include test/plain.mk

test:
	test/tools/install-deps
	test/run

test-long:
	test/tools/install-deps
	CDC_TEST_ROUNDS=200 CDC_VERIFY_ROWS=1000000 CDC_LOAD_TABLES=3000 CDC_LOAD_MB=2300 CDC_LOAD_SECONDS=3600 CDC_FUZZ_INPUTS=50000000 test/run --all-cells

lint:
	test/run lint

bench:
	test/bench/run

demo:
	@SOURCE='$(SOURCE)' YES='$(YES)' test/demo/run

demo-kafka:
	@YES='$(YES)' test/demo/kafka

demo-stop:
	@test/demo/stop

# build/servers, the servers that the tests have fetched, survives: fetching them again costs time and bandwidth.
clean:
	@if [ -d build ]; then find build -mindepth 1 -maxdepth 1 ! -name servers -exec rm -rf {} +; fi

distclean:
	rm -rf build

CLANG_FORMAT ?= $(firstword $(wildcard /usr/bin/clang-format-14) clang-format)
indent:
	$(CLANG_FORMAT) -i $(wildcard src/*/*.[ch] test/unit/*.[ch] test/fuzz/*.[ch])

help:
	@echo 'make            build for PG_CONFIG (now: $(PG_CONFIG)) in build/pg<major>'
	@echo 'make install    install there'
	@echo 'make plain      the parts that need no PostgreSQL, with the strictest warnings'
	@echo 'make test       install what the tests need, run all suites (test/run --help: one suite, one test)'
	@echo 'make test-long  the same in all cells, with 200 kill rounds a transaction above 4 GiB and 50 million fuzz inputs'
	@echo 'make lint       layers, version ifs, sizes, test numbers'
	@echo 'make test-unit  their unit tests under AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make fuzz       fuzz every decoder: FUZZ_RUNS inputs or CDC_FUZZ_SECONDS each, or CDC_FUZZ_INPUTS in all; make fuzz-json: one'
	@echo 'make bench      speed against what else could do it: decode, snapshot, catch-up, memory, latency (test/bench/run --help)'
	@echo 'make demo       a MariaDB (SOURCE=mysql: MySQL) mirrored into PostgreSQL, all private; YES=1 asks nothing'
	@echo 'make demo-kafka a table of a private PostgreSQL shipped to a private Kafka broker, read by kcat; ends by itself'
	@echo 'make demo-stop  end the demo and remove it'
	@echo 'make clean      remove what was built; distclean: also the fetched servers'
	@echo 'make indent     clang-format over all C files'

else
# ------------------------------------------------------------------------------------------- half 2: the build directory

MODULE_big = cdc_bridge
EXTENSION  = cdc_bridge
DATA       = sql/cdc_bridge--0.1.sql
PGFILEDESC = "cdc_bridge - change data capture between MySQL/MariaDB and PostgreSQL"

SOURCES := $(patsubst $(TREE)/%,%,$(sort $(wildcard $(TREE)/src/*/*.c)))
OBJS    := $(SOURCES:.c=.o)

# Which client library speaks to MySQL and MariaDB: libmariadb where there is one, else MySQL's own.
MYSQL_CLIENT ?= $(shell if pkg-config --exists libmariadb || command -v mariadb_config >/dev/null; then echo libmariadb; else echo mysqlclient; fi)
ifeq ($(MYSQL_CLIENT),libmariadb)
MYSQL_CFLAGS := $(shell pkg-config --cflags libmariadb 2>/dev/null || mariadb_config --include)
MYSQL_LIBS   := $(shell pkg-config --libs libmariadb 2>/dev/null || mariadb_config --libs)
else
MYSQL_CFLAGS := $(shell pkg-config --cflags mysqlclient 2>/dev/null || mysql_config --include)
MYSQL_LIBS   := $(shell pkg-config --libs mysqlclient 2>/dev/null || mysql_config --libs)
endif

# YAML=no leaves out what reads the pipelines of Flink CDC; the function that does says so.
YAML ?= yes
ifeq ($(YAML),yes)
YAML_LIBS := -lyaml
else
YAML_FLAGS := -DCDC_WITHOUT_YAML
endif

# CURL=no leaves out what speaks HTTP (schema registries); what would says so. Where libcurl's headers are not there it is no.
CURL ?= $(shell if pkg-config --exists libcurl; then echo yes; else echo no; fi)
ifeq ($(CURL),yes)
CURL_LIBS := $(shell pkg-config --libs libcurl)
else
CURL_FLAGS := -DCDC_WITHOUT_CURL
endif

# KAFKA=no leaves out the client of Kafka; a pipeline that wants it says so.
KAFKA ?= yes
ifeq ($(KAFKA),yes)
KAFKA_LIBS := -lrdkafka
else
KAFKA_FLAGS := -DCDC_WITHOUT_KAFKA
endif

# The server's and the client library's headers as system headers: they do not compile cleanly under -Wextra
# (-Wsign-compare and others), our own files do, and this way no warning has to be switched off for them.
SYSTEM_HEADERS = -isystem $(shell $(PG_CONFIG) --includedir-server) $(patsubst -I%,-isystem %,$(MYSQL_CFLAGS))

WERROR ?= -Werror
PG_CPPFLAGS = -I$(TREE)/src $(SYSTEM_HEADERS) $(YAML_FLAGS) $(CURL_FLAGS) $(KAFKA_FLAGS)
# -MMD -MP: the header dependencies; PGXS tracks them only when the server was configured to.
PG_CFLAGS   = -std=gnu11 -Wall -Wextra -Wno-unused-parameter $(WERROR) -pthread -MMD -MP
SHLIB_LINK  = $(MYSQL_LIBS) -ldeflate -lzstd $(YAML_LIBS) $(CURL_LIBS) $(KAFKA_LIBS) -lpthread

# Bitcode for JIT inlining would be of no use (nothing here is called from expressions), doubles the time to build,
# and wants the very clang that built the server.
override with_llvm = no

# A server that was built inside its source tree does not set it by itself.
VPATH := $(TREE)

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# At reading time: a rule would find the source tree's folders through VPATH and make none here.
$(shell mkdir -p $(sort $(dir $(OBJS))))
$(OBJS): $(TREE)/Makefile
# Errors of our own are known by their message domain. What does not include postgres.h throws none.
$(patsubst $(TREE)/%.c,%.o,$(shell grep -l '^.include "postgres.h"' $(addprefix $(TREE)/,$(SOURCES)))): CPPFLAGS += -include $(TREE)/src/util/util_domain.h
-include $(OBJS:.o=.d)

endif

# Large tables: the plan of a copy and a worker's memory stay small however many chunks there are, a copy ends although rows are added
# at the end of its table for ever, nothing is counted at the source, and it is not slow by a whole order.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new(args => ['--log-output=TABLE']);
my $postgres = CdcBridge::Postgres->new;
my ($many, $chunk) = (120_000, 100);
$source->sql('create database shop', 'create database helper', 'create table helper.d (d int)', 'insert into helper.d values ' . join(', ', map { "($_)" } 0 .. 9),
	'create table shop.many (id bigint primary key, v int)',
	"insert into shop.many select n * 7, n from (select a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d n from helper.d a, helper.d b, helper.d c, helper.d e, helper.d f, helper.d g) x where n < $many",
	'create table shop.empty (id int primary key, v int)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => qq({"snapshot_chunk_rows": $chunk, "snapshot_workers": 3}))->setup;

# ---- S7: a plan of more than a thousand chunks, at rest, so that each row read twice would show
$pipeline->start;
my ($plan, $memory, $looks, $ended) = (0, 0, 0, 0);
poll_until(sub {
	my ($rows, $chunks) = split(/\|/, $postgres->psql(q{select count(*), coalesce(sum(chunks), 0) from cdc_bridge.snapshot_chunk}));
	my @workers = split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type = 'cdc_bridge snapshot worker'}));
	$plan = $rows if $rows > $plan;
	for my $pid (@workers)
	{
		my ($peak) = slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
		$memory = $peak if ($peak // 0) > $memory;
	}
	$looks++ if $chunks > 20;
	# one that ends leaves its chunk to the others, and nothing is read again
	$postgres->psql("select pg_terminate_backend($workers[0])") if $chunks > 200 && @workers > 1 && !$ended && ++$ended;
	return $pipeline->table_status('many', 'state') eq 'streaming';
}, 120) or diag($pipeline->describe);
cmp_ok($looks, '>=', 1, 'S7: the plan was looked at while the table was copied');
is($ended, 1, 'S7: a worker was ended');
cmp_ok($plan, '<=', 30, 'S7: a plan has few rows, however many chunks');
cmp_ok($postgres->psql(q{select chunks from pg_stat_cdc_snapshot where source_table = 'many'}), '>=', $many / $chunk, 'S7: it had more than a thousand chunks');
is($pipeline->table_status('many', 'rows_copied'), $many, 'S7: each row was read once');
cmp_ok($memory, '<', 100_000, 'S7: memory of a worker (kB)');
note("plan of at most $plan rows, peak $memory kB");
$pipeline->wait_for_tables->wait_for_catchup;
$pipeline->is_same('S7: the copy equals the source');
is($postgres->psql(q{select state, rows_copied, percent from pg_stat_cdc_snapshot where source_table = 'empty'}), 'streaming|0|100.0', 'an empty table is complete too');
$source->sql('insert into shop.empty values (1, 1)');
$pipeline->wait_for_catchup->is_same('and followed', 'empty');

# ---- S6: keys far apart, and rows that are added at the end faster than they are copied
$pipeline->stop->drop->drop_target;
$source->sql('drop table shop.many', 'drop table shop.empty', 'create table shop.uneven (id bigint auto_increment primary key, v int)',
	'insert into shop.uneven values (1, 1), (2, 2), (3, 3), (1000000000000, 4), (-9000000000000000000, 5), (4000000000000000000, 6)');
$source->sql('insert into shop.uneven (v) values ' . join(', ', map { "($_)" } 1 .. 594));
$source->sql('analyze table shop.uneven', 'truncate mysql.general_log', 'set global general_log = 1');
$source->start_writers(2, sub { my ($dbh) = @_; $dbh->do('insert into shop.uneven (v) values ' . join(', ', ('(0)') x 40)); select(undef, undef, undef, 0.02); });
my $rows = sub { return $source->query_value('select max(id) from shop.uneven') - 4000000000000000000; };
$pipeline->{options} = '{"snapshot_chunk_rows": 20, "snapshot_workers": 2, "max_rows_per_second": 300}';
my $from = $rows->();
$pipeline->start;
ok(poll_until(sub { return $pipeline->table_status('uneven', 'state') eq 'streaming' }, 40), 'S6: uneven keys: the copy ends while rows are added at the end') or diag($pipeline->describe);
my $added = $rows->() - $from;
$source->stop_writers;
$pipeline->wait_for_tables->wait_for_catchup;
my $copied = $pipeline->table_status('uneven', 'rows_copied');
cmp_ok($added, '>', $copied, "S6: rows came faster ($added) than they were copied ($copied)");
$pipeline->is_same('S6: uneven keys: the copy equals the source');

# ---- S13: what was asked for meanwhile
$source->sql('set global general_log = 0');
my @asked = map { $_->[0] } $source->query_rows(q{select convert(argument using utf8mb4) from mysql.general_log where user_host like 'repl%' and command_type = 'Query'});
my @of_table = grep { /from `shop`/i } @asked;
cmp_ok(scalar(@of_table), '>', 30, 'S13: the log of statements has those of the copy');
is(join("\n", grep { /\b(count|sum)\s*\(/i } @asked), '', 'S13: no COUNT(*)');
is(join("\n", grep { !/\blimit\b/i && !/^show /i } @of_table), '', 'S13: no statement reads a table as a whole');
is(join("\n", grep { /\b(lock|flush)\b/i } @asked), '', 'S1: nothing is locked or flushed');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

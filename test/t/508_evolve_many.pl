# D34, D33: many tables change at once, again and again, while rows come: the stream goes on, no table stops, and the worker's memory does not
# grow with the statements. Many tables are made at once.
# cells: mariadb-15
# takes: 30 s

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $tables = $ENV{CDC_LONG} ? 1000 : 50;
my $rounds = 6;
my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my @tables = map { sprintf('t%04d', $_) } 1 .. $tables;
$source->sql('create database shop', 'create table shop.calm (id int primary key, v int)', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1)") } @tables);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"schema_history_max_rows": 100, "snapshot_workers": 4}')->setup->start->wait_for_state('streaming', 300)->wait_for_tables(300);
my $pid = $pipeline->status('ingest_pid');

sub memory
{
	open(my $status, '<', "/proc/$pid/status") or return 0;
	my ($kb) = join('', <$status>) =~ /^RssAnon:\s+(\d+)/m;
	close($status);
	return $kb;
}
my @memory;
for my $round (1 .. $rounds)
{
	$source->sql(map { ("alter table shop.$_ add c$round int not null default $round", $round > 1 ? "alter table shop.$_ drop c" . ($round - 1) : (), "insert into shop.$_ (id, v) values ($round + 1, $round)") } @tables);
	$source->sql("insert into shop.calm values ($round, $round)");
	my $start = time();
	$pipeline->wait_for_catchup(300);
	note(sprintf('round %d: %d statements, behind for %.1f s', $round, $tables * ($round > 1 ? 3 : 2), time() - $start));
	push @memory, memory();
}
note("memory (kB): @memory");
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'D34: no table is stopped');
is($pipeline->status('ingest_pid'), $pid, 'D34: by the worker that it began with');
$pipeline->is_same('D34: as the source', $tables[0], $tables[-1], $tables[ $tables / 2 ], 'calm');
is($postgres->psql(q{select count(*) from cdc_schema_history}), '100', 'D33: the history is bounded');
cmp_ok($memory[-1], '<', $memory[1] * 1.3 + 2000, "D33: memory does not grow with the statements (@memory kB)");

# ---- tables that are made, all at once, with rows and changes behind them
my $new = $ENV{CDC_LONG} ? 500 : 50;
my @new = map { sprintf('n%04d', $_) } 1 .. $new;
$source->sql(map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1), (2, 2)", "alter table shop.$_ add w int not null default 3", "update shop.$_ set v = 5 where id = 1") } @new);
my $start = time();
$pipeline->wait_for_catchup(300)->wait_for_tables(300)->wait_for_catchup(300);
note(sprintf('%d tables made: behind for %.1f s, memory %d kB', $new, time() - $start, memory()));
is($postgres->psql(q{select count(*), count(*) filter (where state = 'streaming') from pg_stat_cdc_table where source_table like 'n%'}), "$new|$new", "tables that are made at once all join");
is($postgres->psql('select sum(n), min(n), max(n) from (select (xpath(\'/row/n/text()\', query_to_xml(format(\'select sum(id * 100 + v * 10 + w) as n from shop.%I\', source_table), false, true, \'\')))[1]::text::int as n from pg_stat_cdc_table where source_table like \'n%\') s'),
	join('|', 376 * $new, 376, 376), 'with their rows and changes');
is($pipeline->status('ingest_pid'), $pid, 'by the same worker');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

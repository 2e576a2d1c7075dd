# D34, D33: many tables change at once, again and again, while rows come: the stream goes on, no table stops, and the worker's memory does not
# grow with the statements.
# cells: mariadb-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

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
	$pipeline->wait_for_catchup(300);
	push @memory, memory();
}
note("memory (kB): @memory");
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'D34: no table is stopped');
is($pipeline->status('ingest_pid'), $pid, 'D34: by the worker that it began with');
$pipeline->is_same('D34: as the source', $tables[0], $tables[-1], $tables[ $tables / 2 ], 'calm');
is($postgres->psql(q{select count(*) from cdc_schema_history}), '100', 'D33: the history is bounded');
cmp_ok($memory[-1], '<', $memory[1] * 1.3 + 2000, "D33: memory does not grow with the statements (@memory kB)");
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

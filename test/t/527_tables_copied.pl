# Tables that are emptied, renamed, dropped, replaced or swapped while they are being copied, with a key and without.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$postgres->append_conf('max_worker_processes = 30', 'max_replication_slots = 30');
$postgres->append_conf('max_active_replication_origins = 30') if $postgres->major >= 18;
$postgres->restart;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 10, "snapshot_workers": 6, "max_rows_per_second": 150, "batch_max_ms": 0}')->setup;
my $rows = 90;
# what happens to table T in the middle of its copy
my %case = (
	emptied => ['truncate table shop.T'],
	moved => ['rename table shop.T to shop.T2'],
	dropped => ['drop table shop.T'],
	again => [ 'drop table shop.T', 'create table shop.T (id int primary key, v int)' ],
	replaced => [ 'create table shop._T_new like shop.T', 'insert into shop._T_new select id, -v from shop.T where id > 40', 'rename table shop.T to shop._T_old, shop._T_new to shop.T', 'drop table shop._T_old' ],
	swap => [ 'rename table shop.T to shop.X, shop.other to shop.T, shop.X to shop.other' ],
);
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values " . join(', ', map { "($_, $_)" } 1 .. $rows)) } sort(keys %case), 'other');
$pipeline->start;
my %left = map { $_ => 1 } keys %case;
my $after = $rows;
my $done = poll_until(sub {
	for my $table (split(/\n/, $postgres->psql(qq{select source_table from pg_stat_cdc_snapshot where rows_copied between 10 and $rows - 20 and state = 'snapshot'})))
	{
		next unless delete $left{$table};
		for my $statement (@{ $case{$table} })
		{
			(my $text = $statement) =~ s/T(?=\b|_|2)/$table/g if $statement =~ /T/;
			$source->sql($text);
		}
	}
	return !%left;
}, 60);
ok($done, 'each was changed while its chunks were read') or diag(join(' ', sort keys %left), $pipeline->describe);
my @tables = map { $_->[0] } $source->query_rows(q{select table_name from information_schema.tables where table_schema = 'shop' order by table_name});
for my $table (@tables) { $source->sql("replace into shop.$table values (2, 1000), (1000, 1000)", "update shop.$table set v = v + 1 where id = 85", "delete from shop.$table where id = 70"); }
eval { $pipeline->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; 1 } or diag($@);
is($postgres->psql(q{select coalesce(string_agg(source_table || ' ' || coalesce(last_error, ''), ', '), '') from pg_stat_cdc_table where state <> 'streaming'}), '', 'no table is stopped') or diag($pipeline->describe);
is($postgres->psql(q{select string_agg(source_table, ' ' order by source_table collate "C") from pg_stat_cdc_table}), join(' ', sort @tables), 'the pipeline has the tables of the source');
$pipeline->is_same('D20, D5, D6: while it is copied: ' . ($_ =~ s/2$//r), $_) for @tables;
is($postgres->psql(q{select coalesce(string_agg(relname, ' '), '') from pg_class where relkind = 'r' and relname like 'cdc\_re%'}), '', 'no shadow is left');

# ---- the copy meets it before the stream does
$source->sql('create table shop.slow (id int primary key, v int)', 'insert into shop.slow values ' . join(', ', map { "($_, $_)" } 1 .. $rows));
ok($postgres->poll(q{select rows_copied between 10 and 60 from pg_stat_cdc_snapshot where source_table = 'slow' and state = 'snapshot'}, 't', 60), 'another is being copied');
my $pid = $pipeline->status('ingest_pid');
kill('STOP', $pid) or die "kill: $!";
$source->sql('drop table shop.slow');
ok(poll_until(sub { return $postgres->log_text =~ /"shop\.slow"[^\n]*(is stopped|copied anew|changed while)/; }, 60), 'its copy finds it gone');
kill('CONT', $pid) or die "kill: $!";
$pipeline->wait_for_catchup;
ok($postgres->poll(q{select count(*) from pg_stat_cdc_table where source_table = 'slow'}, '0', 60), 'it leaves when the stream comes to the DROP') or diag($pipeline->describe);
unlike($postgres->log_text, qr/"shop\.slow"[^\n]*is stopped/, 'and is not stopped before');
is($postgres->psql(q{select to_regclass('shop.slow')}), '', 'its target goes');

# ---- without a key: its copy is one snapshot
$source->sql("grant lock tables on *.* to '" . $source->user . "'\@'%'") if $source->is_mysql;
$source->sql('create table shop.keyless (v int)', 'insert into shop.keyless values ' . join(', ', map { "($_)" } 1 .. 600));
ok($postgres->poll(q{select count(*) > 0 from pg_stat_cdc_table where source_table = 'keyless' and state = 'snapshot'}, 't', 60), 'a table without a key is copied');
$source->sql('truncate table shop.keyless', 'insert into shop.keyless values (1), (1), (2)', 'delete from shop.keyless where v = 1 limit 1');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
$pipeline->wait_for_catchup->wait_for_table_state('keyless', 'streaming');
$pipeline->wait_for_catchup;
is($postgres->psql('select string_agg(v::text, \' \' order by v) from shop.keyless'), '1 2', 'D20: TRUNCATE of a table without a key while it is copied');
$source->sql('truncate table shop.keyless', 'insert into shop.keyless values (7), (7)', 'rename table shop.keyless to shop.keyless2', 'insert into shop.keyless2 values (8)');
$pipeline->wait_for_catchup;
is($postgres->psql('select string_agg(v::text, \' \' order by v) from shop.keyless2'), '7 7 8', 'D20, D5: and when it streams');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

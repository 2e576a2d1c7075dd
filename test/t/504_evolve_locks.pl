# The target's DDL waits for others in short tries: who is in the way is told, with the table; readers are not held up behind it; the worker
# can be ended and the pipeline stopped meanwhile; and when the way is free the target follows, once. Views that depend on a column stop the
# table with their name; its stream goes on for others. A kill in the middle of a change leaves all of it or nothing (D28).
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
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1)") } qw(busy viewed other killed));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start->wait_for_state('streaming')->wait_for_tables;

my $session = $postgres->hold('select count(*) from shop.busy');
my $pid = $postgres->psql(q{select pid from pg_stat_activity where application_name = 'in the way'});
$source->sql('alter table shop.busy add w int not null default 2', 'insert into shop.busy values (2, 2, 3)', 'insert into shop.other values (2, 2)');
ok($postgres->poll(q{select state || ' ' || last_error_sqlstate from pg_stat_cdc_table where source_table = 'busy'}, 'streaming 55P03'), 'the table waits, and is well') or diag($pipeline->describe);
like($pipeline->table_status('busy', 'last_error'), qr/target of source table "shop\.busy" waits to be altered/, 'it says so');
like($pipeline->table_status('busy', 'last_error_detail'), qr/\b$pid\b/, 'with who is in the way');
ok($pipeline->table_status('busy', 'last_error_at') ne '', 'and since when');
ok($postgres->poll(qq{select count(*) from pg_stat_activity where backend_type = 'cdc_bridge ingest worker' and query like '%waits to alter the target of table shop.busy%'}, '1'), 'the worker shows it');
is($postgres->psql(q{set statement_timeout = '4s'; select count(*) from shop.busy}), '1', 'readers are not held up');

# the worker is ended, and comes back to the same place
my $ingest = $pipeline->status('ingest_pid');
$postgres->psql("select pg_terminate_backend($ingest)");
ok(poll_until(sub { $pipeline->status('ingest_pid') =~ /^(?!$ingest$)\d+$/ }), 'a worker that waits can be ended');
$pipeline->stop;
is($pipeline->state, 'stopped', 'and the pipeline be stopped');
$pipeline->start;
ok($postgres->poll(qq{select count(*) from pg_stat_activity where backend_type = 'cdc_bridge ingest worker' and query like '%waits to alter the target of table shop.busy%'}, '1'), 'it waits again');
$postgres->release($session);
$pipeline->wait_for_catchup;
$pipeline->is_same('when the way is free the target follows', 'busy', 'other');
is($pipeline->table_status('busy', 'last_error'), '', 'and nothing is said any more');
is($postgres->psql(q{select count(*) from cdc_schema_history where source_table = 'busy'}), '1', 'once');

# the way becomes free while nobody waits
$session = $postgres->hold('select count(*) from shop.busy');
$source->sql('alter table shop.busy add x int');
ok($postgres->poll(q{select last_error_sqlstate from pg_stat_cdc_table where source_table = 'busy'}, '55P03'), 'the table waits');
$pipeline->stop;
$postgres->release($session);
$pipeline->start->wait_for_catchup;
$pipeline->is_same('the next worker finds the way free', 'busy');
is($pipeline->table_status('busy', 'last_error'), '', 'and what the last one said is gone');

# a view
$postgres->psql('create view public.uses_v as select v from shop.viewed');
$source->sql('alter table shop.viewed modify v bigint', 'insert into shop.viewed values (2, 2)', 'insert into shop.other values (3, 3)');
$pipeline->wait_for_table_state('viewed', 'stopped')->wait_for_catchup;
like($pipeline->table_status('viewed', $_->[0]), $_->[1], "a view in the way: $_->[0]") for [ last_error_detail => qr/uses_v/ ], [ last_error_hint => qr/cdc_resync_table/ ];
is($postgres->psql(q{select result, error_detail ~ 'uses_v', kinds from cdc_schema_history where source_table = 'viewed'}), 'stopped|t|{alter_type}', 'the history has it') or diag($postgres->psql(q{select * from cdc_schema_history}));
$pipeline->is_same('others go on', 'other');
$postgres->psql(q{drop view public.uses_v; select cdc_resync_table('shop_in', 'shop.viewed')});
$pipeline->wait_for_table_state('viewed', 'streaming')->wait_for_catchup;
$pipeline->is_same('with the cause removed a new copy is right', 'viewed');
is($postgres->psql(q{select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'shop.viewed'::regclass and attname = 'v'}), 'bigint', 'and has the new type');

# D28: kills while statements come
for my $round (1 .. 6)
{
	$source->sql("alter table shop.killed add c$round int not null default $round", "insert into shop.killed (id, v) values (10 * $round, $round)", $round > 2 ? 'alter table shop.killed drop c' . ($round - 2) : ());
	my $pid = $pipeline->status('ingest_pid');
	kill('KILL', $pid) if $pid =~ /^\d+$/;
	poll_until(sub { $pipeline->status('ingest_pid') =~ /^\d+$/ && $pipeline->status('ingest_pid') ne $pid });
}
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('D28: after kills each statement has counted once', 'killed');
is($postgres->psql(q{select count(*), count(distinct statement), min(result) from cdc_schema_history where source_table = 'killed'}), '10|10|applied', 'D28: and stands once in the history');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

# Statements that reach the extension by another way than its functions: a transaction that changes pipelines is not PREPAREd, for nothing would
# carry it out at COMMIT PREPARED; the extension leaves nothing behind when it goes with its schema; and a CHECK constraint that the target gets
# while it is copied anew holds for the new rows too.
#
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new(conf => "max_prepared_transactions = 5\n");
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1), (2, 2)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;

# 1. PREPARE TRANSACTION
like($postgres->psql_error('begin; ' . $pipeline->start_statement . q{; prepare transaction 'one'}), qr/0A000: cannot PREPARE a transaction that changes pipelines of cdc_bridge/,
	'a transaction that starts a pipeline is not prepared');
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
for my $call (q{cdc_stop_pipeline('shop_in')}, q{cdc_drop_pipeline('shop_in')}, q{cdc_resync_table('shop_in', 'shop.t')})
{
	like($postgres->psql_error("begin; select $call; prepare transaction 'two'"), qr/0A000: cannot PREPARE/, "nor one with $call");
}
like($postgres->psql_error(q{begin; drop extension cdc_bridge cascade; prepare transaction 'three'}), qr/0A000: cannot PREPARE/, 'nor one that drops the extension');
is($postgres->psql('select count(*) from pg_prepared_xacts'), '0', 'none is left');
$postgres->psql(q{begin; select count(*) from pg_stat_cdc_pipeline; create table public.other (i int); prepare transaction 'four'; commit prepared 'four'});
$source->sql('update shop.t set v = v + 10');
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('the stream goes on');

# 2. a CHECK constraint beside a new copy: a session that uses the target keeps the copy from its place until it has altered the table
open(my $session, '|-', "$postgres->{bindir}/psql", '-XAtq', '-o', '/dev/null', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres') or die "psql: $!";
$session->autoflush(1);
print $session "begin; select * from shop.t;\n";
ok($postgres->poll(q{select count(*) from pg_locks where relation = 'shop.t'::regclass and mode = 'AccessShareLock' and granted}, '1', 30), 'a session reads the target');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.t')});
ok($postgres->poll(q{select last_error ~ 'waits to be put in place' from pg_stat_cdc_table}, 't', 60), 'a new copy waits') or diag($pipeline->describe);
$source->sql('update shop.t set v = 500 where id = 2');
$pipeline->wait_for_catchup;
is($postgres->psql('select v from shop.t where id = 2'), '12', 'readers see the old rows');
print $session "alter table shop.t add constraint small check (v < 100); commit;\n\\q\n";
close($session);
ok($postgres->poll(q{select state from pg_stat_cdc_table}, 'stopped', 60), 'the rows of the copy do not fit: the table is stopped') or diag($pipeline->describe);
is($pipeline->table_status('t', 'last_error_sqlstate'), '23514', 'by the constraint');
is($postgres->psql('select count(*), max(v) from shop.t'), '2|12', 'with the rows that it had');
like($postgres->log_text, qr/was altered while it was copied anew; it is copied once more/, 'it was copied once more');
$source->sql('update shop.t set v = 50 where id = 2');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.t')});
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
ok($postgres->poll(q{select state from pg_stat_cdc_table}, 'streaming', 60), 'when they fit it streams') or diag($pipeline->describe);
$pipeline->is_same('and has the new rows');

# 3. the extension goes with its schema
is($postgres->psql(q{select count(*) > 0 from pg_replication_origin where roname like 'cdc\_%'}), 't', 'there are origins');
like($postgres->psql_error(q{begin read only; drop extension cdc_bridge}), qr/25006: cannot execute DROP EXTENSION in a read-only transaction/, 'a read-only transaction gets the usual error');
$pipeline->wait_for_state('streaming');
$postgres->psql('set client_min_messages = warning; drop schema public cascade');
is($postgres->psql('select count(*) from pg_replication_origin'), '0', 'none are left');
ok($postgres->poll(q{select count(*) from pg_stat_activity where backend_type like 'cdc\_bridge %' and backend_type <> 'cdc_bridge launcher'}, '0', 60), 'nor workers');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

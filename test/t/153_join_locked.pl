# A table that is locked at the source joins, or is copied anew: the stream of all others goes on meanwhile, the table's row tells what
# it waits for, and it joins when the lock is gone. The lag of a worker that does not come to look is not 0. And a table that was made
# at the source while the stream was behind joins in front of its CREATE TABLE.
# takes: 48 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1), (2, 2)") } qw(other old new new2 new3));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, tables => '{shop.other,shop.old}')->setup;
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

my $id = 10;
# The stream goes on: a change of another table arrives while LOCKER holds its lock.
sub goes_on
{
	my ($name) = @_;
	$id++;
	$source->sql("insert into shop.other values ($id, $id)");
	ok($postgres->poll("select count(*) from shop.other where id = $id", '1', 60), "$name: the stream goes on") or diag($pipeline->describe);
	return;
}

sub waits
{
	my ($table, $state, $name) = @_;
	ok($postgres->poll("select last_error ~ 'is locked' from pg_stat_cdc_table where source_table = '$table'", 't', 60), "$name: its row says so")
	  or diag($pipeline->describe);
	is($pipeline->table_status($table, 'state'), $state, "$name: it is $state meanwhile");
	is($pipeline->table_status($table, 'last_error_sqlstate'), '55P03', "$name: SQLSTATE");
	like($pipeline->table_status($table, 'last_error_detail'), qr/tried again every 10 s; the others go on/, "$name: detail");
	like($pipeline->table_status($table, 'last_error_hint'), qr/LOCK TABLES that holds it/, "$name: hint");
	return;
}

sub has_joined
{
	my ($name, @tables) = @_;
	for my $table (@tables)
	{
		ok($postgres->poll("select state || coalesce(last_error, '') from pg_stat_cdc_table where source_table = '$table'", 'streaming', 90), "$name: $table streams")
		  or diag($pipeline->describe);
	}
	$pipeline->wait_for_catchup;
	return $pipeline->is_same($name, 'other', @tables);
}

# 1. new tables, more than are waited for in one go; through a restart of the pipeline
my $locker = $source->connect;
$locker->do('lock tables shop.new write, shop.new2 write, shop.new3 write');
$postgres->psql(join(';', map { "select cdc_add_table('shop_in', 'shop.$_')" } qw(new new2 new3)));
goes_on('a new table is locked');
waits($_, 'stopped', "$_ is locked") for qw(new new2 new3);
goes_on('still locked');
$pipeline->wait_for_state('streaming');
is($pipeline->status('last_error'), '', 'the pipeline is well');
$pipeline->stop->start->wait_for_state('streaming');
goes_on('restarted');
waits('new', 'stopped', 'restarted');
$locker->do('insert into shop.new values (3, 3)');
$locker->do('unlock tables');
$source->sql('insert into shop.new values (4, 4)');
has_joined('the lock is gone', qw(new new2 new3));

# 2. one that is to be copied anew streams on until then
my $generation = q{select generation from cdc_bridge.table_state join cdc_bridge.pipeline_table using (pipeline_id, table_id) where source_table = 'old'};
my $before = $postgres->psql($generation);
$postgres->psql('delete from shop.old where id = 1');
$locker->do('lock tables shop.old write');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.old')});
waits('old', 'streaming', 'to be copied anew');
goes_on('to be copied anew');
$locker->do('insert into shop.old values (5, 5)');
ok($postgres->poll('select count(*) from shop.old where id = 5', '1', 60), 'its own changes are followed');
is($postgres->psql($generation), $before, 'it has not begun anew');
$locker->do('unlock tables');
ok($postgres->poll("select ($generation) > $before", 't', 60), 'it begins anew when the lock is gone');
has_joined('copied anew', 'old');

# 3. the only table of a pipeline: it does not fail for having none left
$pipeline->stop->drop->drop_target;
$pipeline->{tables} = '{shop.new}';
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$locker->do('lock tables shop.other write');
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.other'); select cdc_remove_table('shop_in', 'shop.new')});
waits('other', 'stopped', 'the only one');
$pipeline->wait_for_state('streaming');
is($pipeline->status('last_error'), '', 'the only one: the pipeline goes on');
$locker->do('unlock tables');
has_joined('the only one', 'other');

# 4. lag
$pipeline->wait_for_catchup;
ok($postgres->poll(q{select lag = interval '0' from pg_stat_cdc_pipeline}, 't', 60), 'the lag of a worker that looks is 0');
my $pid = $pipeline->status('ingest_pid');
kill('STOP', $pid) or die "kill: $!";
ok($postgres->poll(q{select lag > interval '3 seconds' from pg_stat_cdc_pipeline}, 't', 60), 'of one that does not, it grows');
kill('CONT', $pid) or die "kill: $!";
ok($postgres->poll(q{select lag = interval '0' from pg_stat_cdc_pipeline}, 't', 60), 'until it looks again');

# 5. made at the source while the stream was behind
$pipeline->stop;
$source->sql('insert into shop.other values (9001, 1)', 'create table shop.late (id int primary key, v int)', 'insert into shop.late values (1, 1), (2, 2)',
	'update shop.late set v = 20 where id = 2', 'create table shop.late2 (id int primary key, v int)', 'insert into shop.late2 select * from shop.late',
	'drop table shop.late2', 'create table shop.late2 (id int primary key, v int)', 'insert into shop.late2 values (7, 7)');
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.late'); select cdc_add_table('shop_in', 'shop.late2')});
$pipeline->start;
has_joined('made while the stream was behind', 'late');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where source_table = 'late' and state = 'streaming'}), '1', 'it is not stopped');
has_joined('one that was dropped in between', 'late', 'late2');
$source->sql('drop table shop.late', 'create table shop.late (id int primary key, v int)', 'insert into shop.late values (8, 8)');
has_joined('and one that is dropped and made again', 'late');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

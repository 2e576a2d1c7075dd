# What a table that joins a running stream must wait for. A transaction stands in the binary log, and the stream has passed it,
# before a SELECT can see it: the table's join position lies behind it, so only a chunk can bring its rows, and no chunk may be read
# before they can be seen. Here that moment is made as long as we like, as in 030. And XA transactions that were prepared before the
# table joined, which the stream passed too.
# takes: 29 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::HeldCommit;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use Test::More;

my $mysql = ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql';
my ($source, $postgres, $pipeline);

# A source whose commits can be held, and a pipeline that streams another of its tables.
sub begin
{
	my (@args) = @_;
	$source = CdcBridge::HeldCommit->source(@args);
	# MySQL lists prepared transactions only for who may end them; a mark without GTIDs needs the other
	$source->dbh->do(sprintf("grant xa_recover_admin, backup_admin on *.* to '%s'\@'%%'", $source->user)) if $source->is_mysql;
	$postgres = CdcBridge::Postgres->new;
	$source->sql('create database shop', 'create table shop.other (id int primary key, v varchar(20) not null)', q{insert into shop.other values (1, 'x')},
		'create table shop.t (id int primary key, v varchar(20) not null)', 'insert into shop.t values ' . join(', ', map { "($_, 'old')" } 1 .. 2000));
	$pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, tables => '{shop.other}', options => '{"snapshot_chunk_rows": 500}')->setup;
	$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	return;
}

sub state_of { my ($column) = @_; return $postgres->psql("select $column from cdc_bridge.table_state join cdc_bridge.pipeline_table using (pipeline_id, table_id) where source_table = 't'"); }
my $copied = q{select coalesce(max(chunks), 0) > 0 from pg_stat_cdc_snapshot where source_table = 't'};

sub hold_and_join
{
	for my $round ([ 'joins', "select cdc_add_table('shop_in', 'shop.t')" ], [ 'is copied anew', "select cdc_resync_table('shop_in', 'shop.t')" ])
	{
		my ($what, $statement) = @$round;
		$source->sql('delete from shop.t where id > 2000', 'replace into shop.t values ' . join(', ', map { "($_, 'old')" } 1 .. 2000));
		$pipeline->wait_for_catchup;
		my $held = CdcBridge::HeldCommit->new($source, q{update shop.t set v = 'new' where id between 10 and 20},
			'delete from shop.t where id = 500', q{insert into shop.t values (3000, 'new')},
			'update shop.t set id = 4000 where id = 700');
		is($source->query_value('select v from shop.t where id = 10'), 'old', 'the held transaction is in the log and not visible');
		$pipeline->wait_for_catchup;
		my ($file, $offset) = $source->binlog_position;
		my $anew = $what eq 'joins' ? 0 : 1;
		my $generation = $anew ? state_of('generation') : 0;
		$postgres->psql($statement);
		ok($postgres->poll(q{select tables_asked = tables_done from cdc_bridge.pipeline_state}), 'it is taken up');
		is(state_of("join_file || ':' || join_offset"), "$file:$offset", "a table $what behind the held transaction");
		isnt(state_of('generation'), $generation, 'as a copy of its own');
		ok(!$postgres->poll($copied, 't', 3), 'no chunk is read while it cannot be seen');
		is(state_of('state'), 'snapshot', 'the table waits');
		$held->release;
		$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
		is($pipeline->table_status('t', 'state'), 'streaming', 'then it goes on') or diag($pipeline->describe);
		$pipeline->is_same("a table that $what while a transaction is held", 't', 'other');
	}
	return;
}

# without GTIDs the marks are positions
if ($mysql)
{
	begin('--gtid-mode=OFF', '--enforce-gtid-consistency=OFF', '--performance-schema=ON');
	hold_and_join();
	$pipeline->drop;
	$postgres->stop;
	$source->stop;
}
begin();
hold_and_join();

# XA: prepared before the table joins, committed right after; the copy waits for it and brings its rows
sub leave { $postgres->psql(q{select cdc_remove_table('shop_in', 'shop.t')}); $pipeline->wait_for_state('streaming'); $postgres->psql('drop table shop.t'); return; }
sub prepare
{
	my ($xid, @statements) = @_;
	my $dbh = $source->connect;
	$dbh->do($_) for "xa start '$xid'", @statements, "xa end '$xid'", "xa prepare '$xid'";
	$pipeline->wait_for_catchup;
	is($postgres->psql('select count(*) from cdc_bridge.prepared_transaction'), '1', 'a prepared transaction is noted');
	return $dbh;
}
leave();
my $dbh = prepare('short', q{update shop.t set v = 'xa' where id < 10}, q{insert into shop.t values (5001, 'xa')});
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.t')});
ok($postgres->poll(q{select tables_asked = tables_done from cdc_bridge.pipeline_state}), 'it is taken up');
$dbh->do(q{xa commit 'short'});
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is($pipeline->table_status('t', 'state'), 'streaming', 'one that ends while the table joins does no harm') or diag($pipeline->describe);
$pipeline->is_same('its rows are there', 't', 'other');

# one that stays prepared and changes other tables only: the table need not care
leave();
$dbh = prepare('other', q{update shop.other set v = 'xa' where id = 1});
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.t')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
$dbh->do(q{xa commit 'other'});
$pipeline->wait_for_catchup;
is($pipeline->table_status('t', 'state'), 'streaming', 'one that changed other tables only does no harm') or diag($pipeline->describe);
$pipeline->is_same('its rows are there', 't', 'other');

# one that stays prepared: the table does not wait for ever; the commit stops it, and only it
leave();
$dbh = prepare('long', q{update shop.t set v = 'xa2' where id < 10}, q{insert into shop.t values (5002, 'xa')});
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.t')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($pipeline->table_status('t', 'state'), 'streaming', 'the table does not wait for ever');
$dbh->do(q{xa commit 'long'});
$pipeline->wait_for_table_state('t', 'stopped');
like($pipeline->table_status('t', 'last_error'), qr/^XA transaction X'6c6f6e67',X'',1 was prepared before source table "shop\.t" joined$/, 'the commit of one that it has not stops it');
like($pipeline->table_status('t', 'last_error_hint'), qr/cdc_resync_table/, 'with a hint');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.t')});
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is($pipeline->table_status('t', 'state'), 'streaming', 'copied anew') or diag($pipeline->describe);
$pipeline->is_same('now its rows are there', 't', 'other');

# a rollback is harmless
leave();
$dbh = prepare('undone', q{update shop.t set v = 'xa3' where id < 10});
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.t')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
$dbh->do(q{xa rollback 'undone'});
$source->sql(q{insert into shop.t values (6000, 'after')});
$pipeline->wait_for_catchup;
is($pipeline->table_status('t', 'state'), 'streaming', 'XA ROLLBACK does no harm');
$pipeline->is_same('equal', 't', 'other');

# A stream that comes again from before the table joined: what is older than the table is not its own.
leave();
my ($file, $offset) = $source->binlog_position;
$source->sql(q{update shop.t set v = 'before'}, q{update shop.other set v = 'before'});
$pipeline->wait_for_catchup;
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.t')});
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$source->sql(q{update shop.t set v = 'after' where id = 1});
$pipeline->wait_for_catchup->stop;
my $before = $pipeline->table_status('other', 'updates');
is($pipeline->table_status('t', 'updates'), '1', 'one change since it joined');
my $id = $pipeline->status('pipeline_id');
$postgres->psql(join(';', map { qq{update cdc_bridge.position_${id}_$_ set file = '$file', "offset" = $offset, file_created = null} } 1, 2));
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
ok($postgres->poll(qq{select updates > $before from pg_stat_cdc_table where source_table = 'other'}), 'the stream came again from further back');
is($pipeline->table_status('t', 'updates'), '2', 'the table took again what came after it joined, and nothing before');
$pipeline->is_same('equal', 't', 'other');

done_testing();

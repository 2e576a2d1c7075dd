# XA transactions: their changes are in the log at XA PREPARE and count from XA COMMIT on. One that is prepared under the
# pipeline's eyes stops its tables; one that was prepared before the pipeline began and is committed later has its rows nowhere,
# and makes the pipeline fail, loudly.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create database elsewhere', 'create table elsewhere.t (id int primary key)',
	map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1), (2, 2)") } qw(prepared bystander));

# Prepare an XA transaction of STATEMENTS; the connection that made it goes, the transaction stays.
sub prepare
{
	my ($xid, @statements) = @_;
	my $dbh = $source->connect;
	$dbh->do($_) for "xa start $xid", @statements, "xa end $xid", "xa prepare $xid";
	$dbh->disconnect;
}

# End it; the server may still be busy with taking it over from the connection that went.
sub finish
{
	my ($statement) = @_;
	my $error;
	poll_until(sub { return eval { $source->connect->do($statement); 1 } || do { $error = $@; 0 }; }, 30) or die "$statement: $error";
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
my $noted = 'select xid from cdc_bridge.prepared_xid order by xid';

# 1. Prepared before the start, rolled back later: harmless. Prepared before, committed later: the pipeline fails.
prepare(q{'before','rolled back',3}, 'update shop.prepared set v = 10 where id = 1');
prepare(q{'before','committed',4000}, 'insert into shop.prepared values (3, 3)');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
finish(q{xa rollback 'before','rolled back',3});
$source->sql('insert into shop.bystander values (3, 3)');
$pipeline->wait_for_catchup;
is($pipeline->state, 'streaming', 'the rollback of one that was prepared before the start is harmless');
$pipeline->is_same('both sides are equal after it');
is($postgres->psql('select count(*) from shop.prepared'), '2', 'the other one is invisible');

$source->sql('insert into shop.bystander values (4, 4)');
finish(q{xa commit 'before','committed',4000});
$source->sql('insert into shop.bystander values (5, 5)');
$pipeline->wait_for_state('failed', 60);
like($pipeline->status('last_error'), qr/^XA transaction X'6265666f7265',X'636f6d6d6974746564',4000 was prepared before pipeline "shop_in" began$/,
	'its commit fails the pipeline');
is($pipeline->status('last_error_sqlstate'), 'YC005', 'with SQLSTATE');
like($pipeline->status('last_error_detail'), qr/^It was committed at bl\.\d+:\d+; /, 'with the position in the detail');
like($pipeline->status('last_error_hint'), qr/cdc_drop_pipeline\(\) and cdc_start_pipeline\(\)/, 'with a way out');
is($postgres->psql('select max(id) from shop.bystander'), '4', 'what came before it is there, what comes after it is not');

$pipeline->start;
ok(poll_until(sub { return $pipeline->state eq 'failed'; }, 60), 'starting it again does not get past it');

$pipeline->drop->drop_target;
is($postgres->psql($noted), '', 'the dropped pipeline leaves no notes');
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('begun anew, both sides are equal');

# 2. One phase, and a prepared transaction that touches no table of ours.
my $dbh = $source->connect;
$dbh->do($_) for q{xa start 'one'}, 'insert into shop.bystander values (20, 20)', 'update shop.prepared set v = 20 where id = 2', q{xa end 'one'},
  q{xa commit 'one' one phase};
prepare(q{'elsewhere'}, 'insert into elsewhere.t values (1)');
$pipeline->wait_for_catchup;
$pipeline->is_same('one phase is applied');
is($postgres->psql($noted), q{X'656c73657768657265',X'',1}, 'a prepared transaction is noted, whatever it changed');
finish(q{xa commit 'elsewhere'});
$source->sql('insert into shop.bystander values (21, 21)');
$pipeline->wait_for_catchup;
is($postgres->psql($noted), '', 'and no longer when it has ended');
is($pipeline->state, 'streaming', 'the pipeline streams');

# 3. Prepared while it streams; the worker is killed, then it is committed: the table is stopped, the others go on.
prepare(q{'a''b\\'', x'00ff5c'}, 'insert into shop.prepared values (30, 30)');
prepare(q{'undone'}, 'insert into shop.prepared values (31, 31)');
$pipeline->wait_for_table_state('prepared', 'stopped', 60)->wait_for_catchup;
is($pipeline->table_status('prepared', 'last_error_sqlstate'), 'YC005', 'the table that it changes is stopped');
is($postgres->psql($noted), "X'61276227',X'00ff5c',1\nX'756e646f6e65',X'',1", 'both are noted, with any bytes in their names');
my $worker = $postgres->psql(q{select pid from pg_stat_activity where backend_type like 'cdc_bridge%ingest%'});
$postgres->kill9_process($worker);
finish(q{xa commit 'a''b\\'', x'00ff5c'});
finish(q{xa rollback 'undone'});
$source->sql('insert into shop.bystander values (30, 30)');
ok($postgres->poll('select count(*) from shop.bystander where id = 30', '1', 60), 'the other table goes on after kill -9 of the worker');
$pipeline->wait_for_catchup;
is($postgres->psql($noted), '', 'both have ended');
is($pipeline->state, 'streaming', 'the pipeline streams');
is($pipeline->table_status('prepared', 'state'), 'stopped', 'the table is still stopped');
is($postgres->psql('select count(*) from shop.prepared where id >= 30'), '0', 'and has nothing of either');
$pipeline->is_same('the other table is equal', 'bystander');

# 4. A name is used again.
for my $round (1 .. 2)
{
	prepare(q{'again'}, "insert into elsewhere.t values (10 + $round)");
	finish(q{xa commit 'again'});
}
$source->sql('insert into shop.bystander values (40, 40)');
$pipeline->wait_for_catchup;
is($pipeline->state, 'streaming', 'a name may be used again');
is($postgres->psql($noted), '', 'nothing is left noted');

done_testing();

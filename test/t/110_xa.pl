# XA transactions (B1): their changes are in the log at XA PREPARE and count from XA COMMIT on. Those that are prepared under the
# pipeline's eyes are kept, durably, until then: over restarts and kills of all that can die, rotations, stops, for any time. One that
# was prepared before the pipeline began and is committed later stops the tables, and a new copy mends them.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create database elsewhere', 'create table elsewhere.t (id int primary key)',
	'create table shop.late (id int primary key, v int)', 'create table shop.other (id int primary key, v int)',
	'create table shop.big (id int primary key, v varchar(1000) not null)',
	map { ("create table shop.$_ (id int primary key, v int, u int unique)", "insert into shop.$_ values (1, 1, 1), (2, 2, 2), (3, 3, 3)") } qw(prepared bystander));

# Prepare an XA transaction of STATEMENTS; the connection that made it goes, the transaction stays.
sub prepare
{
	my ($xid, @statements) = @_;
	my $dbh = $source->connect;
	# without gap locks: other statements go on beside it
	$dbh->do($_) for 'set session transaction isolation level read committed', "xa start $xid", @statements, "xa end $xid", "xa prepare $xid";
	$dbh->disconnect;
}

# End it; the server may still be busy with taking it over from the connection that went.
sub finish
{
	my ($statement) = @_;
	my $error;
	poll_until(sub { return eval { $source->connect->do($statement); 1 } || do { $error = $@; 0 }; }, 30) or die "$statement: $error";
}

my @tables = qw(prepared bystander big other);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	tables => '{' . join(',', map { "shop.$_" } @tables) . '}', options => '{"batch_max_rows": 1000}')->setup;
my $noted = 'select xid from cdc_prepared_transactions order by xid';
my $kept = 'select (select count(*) from cdc_bridge.prepared_transaction), (select count(*) from cdc_bridge.prepared_change)';
sub worker { return $postgres->psql(q{select pid from pg_stat_activity where backend_type like 'cdc_bridge%ingest%'}); }
sub is_same { return $pipeline->is_same($_[0], @tables); }

# 1. Prepared before the start, rolled back later: harmless. Prepared before, committed later: the tables stop.
prepare(q{'before','rolled back',3}, 'update shop.prepared set v = 10 where id = 1');
prepare(q{'before','committed',4000}, 'insert into shop.prepared values (4, 4, 4)');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
finish(q{xa rollback 'before','rolled back',3});
$source->sql('insert into shop.bystander values (4, 4, 4)');
$pipeline->wait_for_catchup;
is($pipeline->state, 'streaming', 'B1: the rollback of one that was prepared before the start is harmless');
is_same('both sides are equal after it');
is($postgres->psql('select count(*) from shop.prepared'), '3', 'the other one is invisible');

$source->sql('insert into shop.bystander values (5, 5, 5)');
finish(q{xa commit 'before','committed',4000});
$source->sql('insert into shop.bystander values (6, 6, 6)');
$pipeline->wait_for_state('failed', 60);
is($pipeline->status('last_error'), 'all tables of pipeline "shop_in" are stopped', 'B1: its commit stops the tables');
like($pipeline->table_status('prepared', 'last_error'),
	qr/^XA transaction X'6265666f7265',X'636f6d6d6974746564',4000 was prepared before source table "shop\.prepared" joined$/, 'the view says why');
is($pipeline->table_status('prepared', 'last_error_sqlstate'), 'YC005', 'with SQLSTATE');
like($pipeline->table_status('prepared', 'last_error_detail'), qr/^It was committed at bl\.\d+:\d+; .* Which tables it changed is not known\.$/, 'with the position in the detail');
like($pipeline->table_status('prepared', 'last_error_hint'), qr/cdc_resync_table\(\)/, 'with a way out');
is($postgres->psql('select max(id) from shop.bystander'), '5', 'what came before it is there, what comes after it is not');
$postgres->psql("select cdc_resync_table('shop_in', 'shop.$_')") for @tables;
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is_same('copied anew, both sides are equal');

# 2. One phase, small and in several pieces; and a prepared transaction that touches no table of ours.
my $rows = sub { my ($from, $n, $length) = @_; return 'insert into shop.big values ' . join(', ', map { sprintf("(%d, '%s')", $_, chr(97 + $_ % 26) x $length) } $from .. $from + $n - 1); };
my $dbh = $source->connect;
$dbh->do($_) for q{xa start 'one'}, 'insert into shop.bystander values (20, 20, 20)', 'update shop.prepared set v = 20 where id = 2', q{xa end 'one'},
  q{xa commit 'one' one phase};
$dbh->do($_) for q{xa start 'one'}, $rows->(1, 2000, 500), 'delete from shop.big where id % 2 = 0', q{xa end 'one'}, q{xa commit 'one' one phase};
prepare(q{'elsewhere'}, 'insert into elsewhere.t values (1)');
$pipeline->wait_for_catchup;
is_same('B1: one phase is applied');
is($postgres->psql($kept), '1|0', 'nothing of it is kept');
is($postgres->psql(q{select xid, source_tables, changes, bytes from cdc_prepared_transactions}), q{X'656c73657768657265',X'',1|{elsewhere.t}|0|0}, 'a prepared transaction is noted, whatever it changed');
finish(q{xa commit 'elsewhere'});
$pipeline->wait_for_catchup;
is($postgres->psql($noted), '', 'and no longer when it has ended');

# 3. Prepared while it streams, with other transactions around: invisible, through whatever happens, and then there.
prepare(q{'a''b\\'', x'00ff5c'}, 'insert into shop.prepared values (30, 30, 30)', 'update shop.prepared set id = 31 where id = 30',
	'update shop.prepared set u = null where id = 1', 'update shop.prepared set u = 1, v = 11 where id = 2', 'delete from shop.prepared where id = 3', 'insert into elsewhere.t values (30)');
prepare(q{'undone'}, 'insert into shop.prepared values (40, 40, 40)', 'update shop.bystander set v = 40 where id = 1');
$source->sql('insert into shop.prepared values (50, 50, 50)', 'insert into shop.bystander values (50, 50, 50)');
$pipeline->wait_for_catchup;
is($postgres->psql($noted), "X'61276227',X'00ff5c',1\nX'756e646f6e65',X'',1", 'B1: both are noted, with any bytes in their names');
is($postgres->psql(q{select source_tables, changes, bytes > 0, "offset" > 0, prepared_at between now() - interval '5 minutes' and now() + interval '5 minutes'
	from cdc_prepared_transactions order by xid limit 1}), '{shop.prepared,elsewhere.t}|5|t|t|t', 'the view tells how much is kept');
is_same('they are invisible');
$postgres->kill9_process(worker());
ok($postgres->poll(q{select count(*) > 0 from pg_stat_activity where backend_type like 'cdc_bridge%ingest%'}), 'the worker comes back after kill -9');
$source->dbh->do('flush binary logs');
$source->sql('insert into shop.prepared values (51, 51, 51)');
$pipeline->wait_for_catchup->stop;
$source->kill9;
$source->start;
$source->dbh->do('flush binary logs');
$postgres->kill9;
$postgres->start;
is_same('they are invisible after kill -9 of both servers');
finish(q{xa commit 'a''b\\'', x'00ff5c'});
finish(q{xa rollback 'undone'});
$source->sql('insert into shop.prepared values (52, 52, 52)');
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
is_same('B1: committed and rolled back while the pipeline was stopped, logs rotated: both sides are equal');
is($postgres->psql($kept), '0|0', 'nothing is kept');
is($postgres->psql(q{select string_agg(source_table || ' ' || state, ', ' order by source_table) from pg_stat_cdc_table}),
	'big streaming, bystander streaming, other streaming, prepared streaming', 'no table stopped');

# 4. A name is used again.
for my $round (1 .. 2)
{
	prepare(q{'again'}, "insert into shop.prepared values (60 + $round, $round, 60 + $round)");
	finish(q{xa commit 'again'});
}
prepare(q{'again'}, 'insert into shop.prepared values (70, 70, 70)');
finish(q{xa rollback 'again'});
$pipeline->wait_for_catchup;
is_same('a name may be used again');
is($postgres->psql($kept), '0|0', 'nothing is left noted');

# 5. What happens to its tables in between: one is copied anew, one joins, one leaves.
prepare(q{'between'}, 'insert into shop.prepared values (80, 80, 80)', 'insert into shop.other values (80, 80)', 'update shop.bystander set v = 80 where id = 1');
$pipeline->wait_for_catchup;
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.prepared'); select cdc_add_table('shop_in', 'shop.late'); select cdc_remove_table('shop_in', 'shop.other')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
finish(q{xa commit 'between'});
$source->sql('insert into shop.late values (81, 81)');
$pipeline->wait_for_catchup;
@tables = qw(prepared bystander big late);
is_same('B1: a table that was copied anew since the PREPARE has its rows, one that joined goes on');
is($pipeline->table_status('late', 'state'), 'streaming', 'the table that joined is not stopped');

# 6. Huge: memory stays what it is.
my $rss = sub { my ($kb) = slurp('/proc/' . worker() . '/status') =~ /^RssAnon:\s+(\d+)/m; return $kb; };
my $idle = $rss->();
$dbh = $source->connect;
$dbh->do(q{xa start 'huge'});
$dbh->do($rows->(10_000 + 2000 * $_, 2000, 900)) for 0 .. 19;
$dbh->do('update shop.big set id = -id where id >= 10000');
$dbh->do($_) for q{xa end 'huge'}, q{xa prepare 'huge'};
$pipeline->wait_for_catchup;
is($postgres->psql('select changes, bytes > 100000000 from cdc_prepared_transactions'), '80000|t', 'a huge one is kept');
cmp_ok($postgres->psql('select count(*) from cdc_bridge.prepared_change'), '>', 400, 'in pieces');
$dbh->do(q{xa commit 'huge'});
my $peak = 0;
my $done = $postgres->psql(q{select count(*) from shop.big}) + 40_000;
my $half = 0;
ok(poll_until(sub {
	my $kb = eval { $rss->() } // 0;
	$peak = $kb if $kb > $peak;
	my $count = $postgres->psql('select count(*) from shop.big');
	$half++ if $count != $done && $count != $done - 40_000;
	return $count == $done;
}), 'and applied');
is($half, 0, 'B33: never by half');
cmp_ok($peak - $idle, '<', 40_000, "B32: with little memory ($idle kB idle, $peak kB at most)");
$pipeline->is_mirrored('both sides are equal', @tables);
is($postgres->psql($kept), '0|0', 'nothing is kept');

done_testing();

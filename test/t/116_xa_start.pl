# Sessions that use XA all the time on another table do not keep a pipeline from starting: an XA COMMIT of a transaction that was
# prepared before the start mark is harmless when every chunk has seen it.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $rounds = 6;
my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create database elsewhere', 'create table elsewhere.t (id int auto_increment primary key, v int)',
	'create table shop.plain (id int primary key, v int)', 'create table shop.moved (id int auto_increment primary key, v int)',
	'insert into shop.plain values ' . join(', ', map { "($_, $_)" } 1 .. 2000));
# MySQL lists prepared transactions only for who may end them
my $grant = sprintf("grant xa_recover_admin on *.* to '%s'\@'%%'", $source->user);
$source->dbh->do($grant) if $source->is_mysql;

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
$source->start_writers(4, sub {
	my ($dbh, $number) = @_;
	our $count;
	my $xid = sprintf("'w%d-%d'", $number, ++$count);
	$dbh->do($_) for "xa start $xid", 'insert into elsewhere.t (v) values (1)', "xa end $xid", "xa prepare $xid";
	select(undef, undef, undef, 0.02 * rand());
	$dbh->do("xa commit $xid");
});

my $foreign = 0;
for my $round (1 .. $rounds)
{
	$pipeline->start->wait_for_state(qr/^(streaming|failed)$/);
	$source->sql("insert into shop.plain values (10000 + $round, $round)");
	$pipeline->wait_for_tables->wait_for_catchup if $pipeline->state ne 'failed';
	is($pipeline->state, 'streaming', "round $round: the pipeline starts under other sessions' XA transactions")
	  or diag($pipeline->status('last_error'), "\n", $pipeline->status('last_error_detail'));
	is($postgres->psql(q{select snapshot_mark_file is not null or snapshot_mark_gtids is not null from cdc_bridge.pipeline_state}), 't',
		"round $round: its snapshot mark is kept");
	$pipeline->is_mirrored("round $round: both sides are equal");
	$pipeline->drop->drop_target if $round < $rounds;
}
$source->stop_writers;

# A transaction that is prepared before the start and ended right after the start mark, on our own table: the copy brings its row.
$pipeline->drop->drop_target;
for my $round (1 .. 4)
{
	my $dbh = $source->connect;
	$dbh->do($_) for "xa start 'short$round'", "insert into shop.moved (v) values ($round)", "xa end 'short$round'", "xa prepare 'short$round'";
	$pipeline->start;
	# between the start mark and the snapshot mark: the start waits for it
	select(undef, undef, undef, 0.3 + 0.2 * $round);
	$dbh->do("xa commit 'short$round'");
	$pipeline->wait_for_state(qr/^(streaming|failed)$/);
	$pipeline->wait_for_tables->wait_for_catchup if $pipeline->state ne 'failed';
	is($pipeline->state, 'streaming', "one that ends while the start waits does no harm ($round)") or diag($pipeline->status('last_error'));
	$pipeline->is_same("its row is there ($round)");
	$pipeline->drop->drop_target;
}

# One that does not end in time: no mark is relied upon, and its commit is told.
my $dbh = $source->connect;
$dbh->do($_) for "xa start 'long'", 'insert into shop.moved (v) values (100)', "xa end 'long'", "xa prepare 'long'";
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql(q{select snapshot_mark_file is null and snapshot_mark_gtids is null from cdc_bridge.pipeline_state}), 't',
	'no mark while a transaction from before the start is open');
is($postgres->psql(q{select xid, file is null, source_tables is null, changes from cdc_prepared_transactions}), q{X'6c6f6e67',X'',1|t|t|0}, 'it is shown, and that nothing of it is known');
like($postgres->log_text, qr/were prepared before pipeline "shop_in" began, and go on\n.*DETAIL:  There are 1: X'6c6f6e67',X'',1\./, 'and told in the log');
$dbh->do("xa commit 'long'");
$pipeline->wait_for_state('failed', 60);
like($pipeline->table_status('moved', 'last_error'), qr/^XA transaction X'6c6f6e67',X'',1 was prepared before source table "shop\.moved" joined$/, 'its commit stops the tables');
is($postgres->psql('select count(*) from cdc_prepared_transactions'), '0', 'and it is no longer shown');
$pipeline->drop->drop_target;

# Rolled back, it does no harm; and one that is prepared while the start waits is noted once, with what it changed.
$dbh = $source->connect;
$dbh->do($_) for "xa start 'long'", 'insert into shop.moved (v) values (200)', "xa end 'long'", "xa prepare 'long'";
$source->sql(q{set global log_output = 'TABLE'}, 'set global general_log = on');
$pipeline->start;
my $asked = sub { return poll_until(sub { return $source->query_value(q{select count(*) from mysql.general_log where argument = 'XA RECOVER'}) }); };
ok($asked->(), 'the start waits');
my $other = $source->connect;
$other->do($_) for "xa start 'during'", 'insert into shop.plain values (50000, 1)', "xa end 'during'", "xa prepare 'during'";
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is($postgres->psql(q{select string_agg(xid || ' ' || coalesce(source_tables::text, '-'), '; ' order by xid) from cdc_prepared_transactions}), "X'647572696e67',X'',1 {shop.plain}; X'6c6f6e67',X'',1 -", 'one that was prepared while the start waited is noted with its tables');
$dbh->do("xa rollback 'long'");
$other->do("xa commit 'during'");
$pipeline->wait_for_catchup->is_same('the one is rolled back, the other has its row');
is($postgres->psql('select count(*) from cdc_prepared_transactions'), '0', 'and neither is shown');
$pipeline->drop->drop_target;

# Nothing is copied: what was prepared before the start and is committed after it is in neither copy nor stream, so it stops the table, however soon it is committed.
$source->sql('truncate mysql.general_log', 'create database bare', 'create table bare.t (id int primary key)');
$postgres->psql('create schema bare; create table bare.t (id int primary key)');
$dbh->do($_) for "xa start 'never'", 'insert into bare.t values (1)', "xa end 'never'", "xa prepare 'never'";
my $bare = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'bare_in', schema => 'bare', options => '{"snapshot": "never"}')->start;
ok($asked->(), 'a pipeline without a copy starts');
$dbh->do("xa commit 'never'");
$bare->wait_for_state('failed');
like($bare->table_status('t', 'last_error'), qr/^XA transaction X'6e65766572',X'',1 was prepared before source table "bare\.t" joined$/, 'B1: what it misses is told, though it was committed while the start waited');
$postgres->psql(q{select cdc_resync_table('bare_in', 'bare.t')});
$bare->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$bare->is_same('copied anew it is equal');
$bare->drop;
$source->sql('set global general_log = off');

my $check = q{select status, hint from cdc_check('shop') where "check" = 'xa_recover'};
if ($source->is_mysql)
{
	is($postgres->psql($check), 'ok|', 'cdc_check: prepared transactions may be listed');
	$source->dbh->do($grant =~ s/^grant/revoke/r =~ s/ to / from /r);
	like($postgres->psql($check), qr/^warning\|GRANT XA_RECOVER_ADMIN ON \*\.\* TO .*;$/, 'cdc_check: or it names the grant');
	$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$pipeline->is_same('without the privilege it starts too');
}
else
{
	is($postgres->psql($check), '', 'MariaDB lists them for everybody');
}

done_testing();

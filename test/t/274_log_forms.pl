# Forms that a log can have, each in the stream of a running pipeline and over restarts: compressed transactions and events, checksums
# that come and go, an empty set of GTIDs, large events, statements that a server no longer knows.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $source = CdcBridge::Source->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v varchar(5000))', 'create table shop.big (id int primary key, b longblob)',
	q{insert into shop.t values (1, 'one')});
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);

# ---- nothing was ever executed

$source->forget_log;
is($source->gtids, '', 'the set of GTIDs is empty');
$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables;
$pipeline->is_same('B13: a pipeline begins with an empty set of GTIDs');
$pipeline->stop->start->wait_for_state('streaming');
$source->sql(q{insert into shop.t values (2, 'two')});
$pipeline->wait_for_catchup;
$pipeline->is_same('B13: and goes on with it');

# ---- compressed

sub event_types
{
	my %seen;
	for my $file (map { $_->[0] } $source->query_rows('show binary logs'))
	{
		$seen{ $_->[2] }++ for $source->query_rows("show binlog events in '$file'");
	}
	return join(' ', sort keys %seen);
}
my $dbh = $source->connect;
$dbh->do($source->is_mysql ? 'set session binlog_transaction_compression = on' : 'set global log_bin_compress = on');
my $n = 100;
my $transaction = sub {
	$dbh->do('begin');
	for (1 .. 50) { $n++; $dbh->do("insert into shop.t values ($n, repeat('abc', 1000))"); }
	$dbh->do("update shop.t set v = concat(v, 'x') where id % 3 = 0");
	$dbh->do("delete from shop.t where id % 5 = 0");
	$dbh->do('commit');
};
$transaction->();
$dbh->do('create table shop.made (id int primary key comment ' . $dbh->quote('x' x 500) . ')');
$pipeline->wait_for_catchup;
$pipeline->is_same(($source->is_mysql ? 'B7: compressed transactions' : 'B8: compressed events'), qw(t big));
like(event_types(), $source->is_mysql ? qr/Transaction_payload/i : qr/(?=.*Write_rows_compressed)(?=.*Query_compressed)/i, 'which the log has');
for (1 .. 3)
{
	$transaction->() for 1 .. 5;
	my $pid = $pipeline->status('ingest_pid');
	$postgres->kill9_process($pid) if $pid;
	poll_until(sub { return $postgres->accepts_connections; }) or die "PostgreSQL did not come back\n";
}
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same(($source->is_mysql ? 'B7' : 'B8') . ': killed in between, positions are between transactions', qw(t big));
$dbh->do('set global log_bin_compress = off') if $source->is_mariadb;

# ---- checksums come and go under an open stream

for my $checksum (qw(NONE CRC32 NONE CRC32))
{
	$source->sql("set global binlog_checksum = '$checksum'", "update shop.t set v = '$checksum' where id = 1", 'insert into shop.t values (' . ++$n . ", '$checksum')");
	$pipeline->wait_for_catchup;
}
$pipeline->is_same('B23: the checksum is switched under the stream', qw(t big));
$source->sql(q{set global binlog_checksum = 'NONE'});
$pipeline->stop;
$source->sql('insert into shop.t values (' . ++$n . q{, 'without')});
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('B23: and begun without', qw(t big));

# ---- what servers no longer know, or say that others do not

if ($source->is_mysql)
{
	ok(!eval { $source->dbh->do('show master status'); 1 }, 'B29: this server no longer has SHOW MASTER STATUS');
	is($postgres->psql(q{select count(*) from cdc_check('shop') where status = 'error'}), '0', 'B29: and nothing of ours asks for it');
}
else
{
	$source->sql('alter table shop.made add column v int', 'alter table shop.made add index (v)', 'drop table shop.made', 'set global binlog_alter_two_phase = on');
	$source->sql('create table shop.made (id int primary key)', 'alter table shop.made engine = innodb', 'alter table shop.made add column w int');
	$source->sql('insert into shop.t values (' . ++$n . q{, 'after statements with status variables of MariaDB')});
	$pipeline->wait_for_catchup;
	$pipeline->is_same('B30: statements with status variables that only MariaDB has', qw(t big));
}

# ---- an event that is larger than the server's limits for packets, which do not hold for the log

$source->sql('set global max_allowed_packet = 67108864');
my $wide = $source->connect;
$wide->do("insert into shop.big values (1, repeat('y', 20000000))");
my $limit = ($source->is_mysql ? 'replica' : 'slave') . '_max_allowed_packet';
$source->sql('set global max_allowed_packet = 1048576', "set global $limit = 1048576");
$pipeline->stop->start;
ok($postgres->poll('select id, length(b) from shop.big', '1|20000000'), 'B27: a row of 20 MB arrives although the limit for packets is 1 MB');
$source->sql('set global max_allowed_packet = 1073741824');    # else it does not even show its events
delete $source->{dbh};
$source->sql('insert into shop.t values (' . ++$n . q{, 'behind it')});
$pipeline->wait_for_catchup;
$pipeline->is_same('B27: and what follows', 't');

done_testing();

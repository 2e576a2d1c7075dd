# A source transaction stands in the binary log before a SELECT can see it. Here that moment is made as long as we like: with
# semi-synchronous replication and no replica, a commit waits after the binary log and before the engine. The snapshot's chunks
# are read meanwhile; afterwards the transaction is released, and both sides must be equal. (Our own dump connection is not a
# semi-sync replica.)

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $mysql = ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql';
my ($source, $enabled);
if ($mysql)
{
	$source = CdcBridge::Source->new;
	$source->sql(q{install plugin rpl_semi_sync_source soname 'semisync_source.so'},
		'set global rpl_semi_sync_source_wait_point = AFTER_SYNC',
		'set global rpl_semi_sync_source_wait_no_replica = ON',
		'set global rpl_semi_sync_source_timeout = 3600000');
	$enabled = 'rpl_semi_sync_source_enabled';
}
else
{
	$source = CdcBridge::Source->new(args => [
		'--rpl-semi-sync-master-wait-point=AFTER_SYNC', '--rpl-semi-sync-master-wait-no-slave=ON', '--rpl-semi-sync-master-timeout=3600000']);
	$enabled = 'rpl_semi_sync_master_enabled';
}
my $postgres = CdcBridge::Postgres->new;

$source->sql('create database shop', 'create table shop.t (id int primary key, v varchar(20) not null)',
	'insert into shop.t values ' . join(', ', map { "($_, 'old')" } 1 .. 2000));

# Run STATEMENTS as one transaction in a process of its own; it hangs in its commit until release.
sub hold
{
	my (@statements) = @_;
	my ($file, $offset) = $source->binlog_position;
	$source->sql("set global $enabled = ON");
	my $pid = fork() // die "fork: $!";
	if (!$pid)
	{
		my $dbh = $source->connect;
		$dbh->begin_work;
		$dbh->do($_) for @statements;
		$dbh->commit;
		POSIX::_exit(0);
	}
	poll_until(sub { my ($f, $o) = $source->binlog_position; return $o > $offset; }, 30) or die "the transaction did not reach the binary log\n";
	return $pid;
}

sub release
{
	my ($pid) = @_;
	$source->sql("set global $enabled = OFF");
	waitpid($pid, 0);
	is($?, 0, 'the held transaction commits');
}

sub is_held
{
	my ($query, $expected) = @_;
	is($source->query_value($query), $expected, 'the held transaction is in the log and not visible');
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 200}')->setup;

# 1. Held before the pipeline starts: its start mark must not lie behind the held transaction.
my $held = hold(q{update shop.t set v = 'new' where id = 10}, 'delete from shop.t where id = 500', q{insert into shop.t values (3000, 'new')},
	'update shop.t set id = 4000 where id = 700');
is_held('select v from shop.t where id = 10', 'old');
$pipeline->start;
# Chunks are read while it is held. Without GTIDs or on a server that lets no mark pass the held transaction the snapshot may
# wait instead; both are right, so whichever comes first.
my $copied = poll_until(sub {
	return $postgres->psql(q{select coalesce(max(rows_copied), 0) from pg_stat_cdc_snapshot}) >= 1000 || $pipeline->state eq 'streaming'; }, 15);
note($copied ? 'chunks were read while the transaction was held' : 'the snapshot waited for the held transaction');
release($held);
$pipeline->wait_for_tables->wait_for_catchup;
$pipeline->is_same('a transaction held across the start of the snapshot');
$pipeline->stop->drop->drop_target;

# 2. Held while it runs: the stream has it long before a chunk can see it.
$source->sql('insert into shop.t select id + 10000, v from shop.t', 'insert into shop.t select id + 100000, v from shop.t');
$pipeline->start->wait_for_state(qr/^(snapshot|streaming)$/);
$held = hold(q{update shop.t set v = 'newer' where id between 100 and 200}, 'delete from shop.t where id between 1000 and 1100',
	'update shop.t set id = id + 1000000 where id between 110000 and 110050', q{insert into shop.t values (50, 'x') on duplicate key update v = 'x'});
poll_until(sub { return $pipeline->state eq 'streaming' || $postgres->psql(q{select coalesce(max(percent), 0) >= 99 from pg_stat_cdc_snapshot}) eq 't'; }, 15);
release($held);
$pipeline->wait_for_tables->wait_for_catchup;
$pipeline->is_same('a transaction held while chunks are read');

# 3. Another table joins while a commit is held (a stop and a start in between, on the same source).
$pipeline->stop;
$held = hold(q{update shop.t set v = 'last' where id < 20});
$pipeline->start->wait_for_state('streaming');
release($held);
$pipeline->wait_for_catchup;
$pipeline->is_same('a transaction held across stop and start');

done_testing();

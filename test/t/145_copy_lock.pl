# Who writes a chunk and the stream exclude each other, and look only when they have the lock. Each is held still with the lock, by other
# sessions' locks on targets, while the other one waits for it; what the waiting one finds then must be what was committed meanwhile. For
# targets that are written row by row and by SQL, and a role whose transactions would see nothing newer than their beginning.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::FakeServer;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $proxy = CdcBridge::FakeServer->new(upstream => $source);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { port => $proxy->port },
	options => '{"snapshot_workers": 1}')->setup;
$postgres->psql(q{alter role postgres set default_transaction_isolation = 'repeatable read'});

# the query for the rows of "main"; the one for the end of a chunk asks for the key alone
my $rows_of_main = '`v`.* FROM `shop`\.`main`';
my %target = (lean => 'create table shop.main (id int primary key, v int)',
	sql => 'create table base.main (id int primary key, v int); create view shop.main as select id, v from base.main');
my %base = (lean => 'shop.main', sql => 'base.main');

$source->sql('create database shop', map { "create table shop.$_ (id int primary key, v int)" } qw(main gate));

# Begin a copy, and hold its one page back when it has been read.
sub begin
{
	my ($tier) = @_;
	$source->sql('delete from shop.main', 'insert into shop.main values ' . join(', ', map { '(' . $_ * 10 . ', 0)' } 1 .. 30), 'replace into shop.gate values (1, 0)');
	$postgres->psql("set client_min_messages = warning; drop schema if exists shop, base cascade; create schema shop; create schema base; $target{$tier}");
	$proxy->hold($rows_of_main);
	$pipeline->start;
	$proxy->wait_until_held;
	return;
}

# Another session's lock on a target, which makes who writes there wait.
my $session;
sub lock_target
{
	my ($table) = @_;
	open($session, '|-', "$postgres->{bindir}/psql", '-qXAt', '-o', '/dev/null', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', 'postgres') or die "psql: $!";
	$session->autoflush(1);
	print $session "begin; lock table $table in share mode;\n";
	$postgres->poll("select count(*) from pg_locks where relation = '$table'::regclass and mode = 'ShareLock' and granted", '1') or die 'no lock';
	return;
}
sub unlock_target { print $session "commit;\n"; close($session); return; }

# What a kind of worker waits for: 'ours' the table's lock of the extension's own, else a relation; '' nothing.
sub waits_for
{
	my ($kind) = @_;
	return $postgres->psql(qq{select case when locktype = 'advisory' and objsubid::int & 65535 = 52673 then 'ours ' || mode else coalesce(relation::regclass::text, locktype) end
		from pg_locks join pg_stat_activity using (pid) where not granted and backend_type = 'cdc_bridge $kind worker'});
}
sub is_waiting
{
	my ($kind, $for, $name) = @_;
	my $seen = '';
	poll_until(sub { return ($seen = waits_for($kind)) ne '' }, 20);
	return is($seen, $for, $name);
}
sub done
{
	my ($tier, $name) = @_;
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$pipeline->is_same("$tier: $name");
	is($pipeline->table_status('main', 'tier'), $tier, 'a target of that kind');
	is($pipeline->status('tables_stopped'), '0', 'no table is stopped');
	$pipeline->stop->drop;
	return;
}

# Rows that the stream removes and rows that it writes come by themselves: a row that is there unexpectedly would have all of it done again,
# with a new look.
my %changes = (removes => [ 'delete from shop.main where id = 100', 'update shop.main set id = 121 where id = 120' ], writes => ['update shop.main set v = 1 where id = 130']);
sub change { my (@statements) = @_; $source->dbh->begin_work; $source->sql(@statements); $source->dbh->commit; return; }

for my $tier (qw(lean sql))
{
	for my $what (sort keys %changes)
	{
		# the stream has the lock: it waits in the middle of a transaction for another table
		begin($tier);
		lock_target('shop.gate');
		change(@{ $changes{$what} }, 'update shop.gate set v = v + 1');
		is_waiting('ingest', 'shop.gate', "$tier: the stream waits, with the lock");
		$proxy->let_go;
		is_waiting('snapshot', 'ours ShareLock', 'who writes the page waits for the lock');
		unlock_target();
		done($tier, "the page leaves out what the stream $what meanwhile");

		# the writer of a page has it: it waits for the target
		begin($tier);
		lock_target($base{$tier});
		$proxy->let_go;
		is_waiting('snapshot', $base{$tier}, "$tier: who writes the page waits, with the lock");
		is($postgres->psql(q{select state from cdc_bridge.snapshot_chunk join cdc_bridge.pipeline_table using (pipeline_id, table_id) where source_table = 'main' and state <> 'rest'}),
			'open', 'its chunk is not done before its rows are there');
		change('update shop.gate set v = v + 1', @{ $changes{$what} });
		is_waiting('ingest', 'ours RowExclusiveLock', 'the stream waits for the lock');
		unlock_target();
		done($tier, "the stream $what what the page brought meanwhile");
	}
}

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

# Transactions that are in the log and never took effect: with ROLLBACK at their end, without any end because the server died while
# it wrote them, or rolled back in part. They are applied as they come, so what was applied has to be undone and passed over.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use POSIX ();
use Test::More;

my $big_rows = 1500;    # of 60 kB
my $cut_after = 15_000_000;

sub start
{
	my ($postgres, @args) = @_;
	my $source = CdcBridge::Source->new(args => \@args);
	$source->sql('create database shop', 'create database elsewhere', 'create table elsewhere.m (id int primary key) engine = MyISAM',
		'create table shop.big (id int primary key, v longtext)',
		map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1)") } qw(a b c free));
	# MySQL without GTIDs asks for it
	$source->sql(q{grant select on performance_schema.* to 'repl'@'%'}, q{grant backup_admin on *.* to 'repl'@'%'}) if $source->is_mysql;
	my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
	$postgres->psql('drop extension if exists cdc_bridge cascade');
	$pipeline->drop_target->setup->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	return ($source, $pipeline);
}

# Kill the server in the middle of writing a big transaction to its log. Returns the log file and where the transaction begins.
sub kill_in_big_transaction
{
	my ($source) = @_;
	for my $attempt (1 .. 5)
	{
		my ($name, $begins) = $source->binlog_position;
		my $file = "$source->{dir}/data/$name";
		my $child = fork() // die "fork: $!";
		if (!$child)
		{
			my $dbh = $source->connect;
			$dbh->begin_work;
			$dbh->do('insert into shop.free values (100, 100)');
			$dbh->do("insert into shop.big values ($_, repeat('x', 60000))") for 1 .. $big_rows;
			eval { $dbh->commit };
			POSIX::_exit(0);
		}
		# without a pause: the write takes a fraction of a second
		1 while (-s $file) < $begins + $cut_after && waitpid($child, POSIX::WNOHANG()) == 0;
		kill('KILL', $source->pid);
		$source->kill9;
		waitpid($child, 0);
		return ($file, $begins) if (-s $file) < $begins + $big_rows * 60_000;
		note('the transaction was written before the kill');
		$source->start;
		$source->sql('truncate table elsewhere.m', 'delete from shop.big', 'delete from shop.free where id = 100');
	}
	die "the server could not be killed in time\n";
}

# Cut the file so that it ends between two events, or inside one.
sub cut
{
	my ($file, $at, $between) = @_;
	open(my $log, '+<', $file) or die "$file: $!";
	binmode($log);
	while (1)
	{
		my $header;
		seek($log, $at, 0);
		last if (read($log, $header, 19) // 0) < 19;
		my $length = (unpack('V C V V', $header))[3];
		last if $at + $length > -s $file;
		$at += $length;
	}
	truncate($log, $between ? $at : $at - 10) or die "truncate: $!";
	close($log);
}

# Does the log hold such a statement from there on?
sub logged
{
	my ($source, $name, $from, $pattern) = @_;
	return scalar grep { $_->[2] eq 'Query' && $_->[5] =~ $pattern } $source->query_rows("show binlog events in '$name' from $from");
}

sub is_intact
{
	my ($pipeline, $name) = @_;
	my $source = $pipeline->source;
	is($source->query_value('select count(*) from shop.big'), 0, "$name: the transaction does not count at the source");
	$source->sql('insert into shop.free values (200, 200)', "insert into shop.big values (1, 'after')");
	$pipeline->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same("$name: both sides are equal");
	is($pipeline->postgres->psql(q{select count(*) from pg_stat_cdc_table where state = 'stopped'}), '0', "$name: no table is stopped");
	$source->sql('delete from shop.big', 'delete from shop.free where id >= 100');
}

my $postgres = CdcBridge::Postgres->new;
my $mysql = ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql';

# 1. ROLLBACK at the end: MariaDB writes it so when a temporary table was made or dropped in the transaction. MySQL 9.7 writes
# nothing then, with GTIDs and without; it has to come out the same.
my @args = ('--binlog-cache-size=64M', '--sync-binlog=1');
my ($source, $pipeline) = start($postgres, @args, $mysql ? ('--gtid-mode=OFF', '--enforce-gtid-consistency=OFF') : ());
my $dbh = $source->connect;
my ($name, $from) = $source->binlog_position;
$dbh->do($_) for 'create temporary table shop.old (id int)', 'begin', 'insert into shop.a values (2, 2)', 'update shop.b set v = 2 where id = 1',
  'drop temporary table shop.old', 'create temporary table shop.new (id int) engine = MyISAM', 'rollback', 'insert into shop.a values (3, 3)',
  'begin', 'insert into shop.c values (2, 2)', 'commit';
ok($mysql || logged($source, $name, $from, qr/^ROLLBACK$/), 'the log holds a transaction that was rolled back');
$pipeline->wait_for_catchup;
$pipeline->is_same('what was rolled back is not there, what came afterwards is');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'no table is stopped');

# 2. ROLLBACK TO SAVEPOINT over rows of another engine (250 has the usual cases). MariaDB logs it, and by a name that we do not know to
# be the savepoint's: the tables that the transaction changed before it are stopped at its start, the others go on. MySQL 9.7 leaves
# out what was undone.
($name, $from) = $source->binlog_position;
$dbh->do($_) for 'set names utf8mb4', 'begin', 'insert into shop.a values (10, 10)', "savepoint `\xc3\xa4`", 'insert into shop.b values (10, 10)', 'insert into elsewhere.m values (1)',
  "rollback to `\xc3\x84`", 'insert into shop.c values (10, 10)', 'commit', 'insert into shop.free values (10, 10)';
$pipeline->wait_for_catchup;
if (logged($source, $name, $from, qr/^ROLLBACK TO/))
{
	for my $table (qw(a b))
	{
		is($pipeline->table_status($table, 'state'), 'stopped', "table $table, changed before ROLLBACK TO SAVEPOINT, is stopped");
		is($pipeline->table_status($table, 'last_error_sqlstate'), 'YC005', "table $table says why");
		is($postgres->psql("select count(*) from shop.$table where id = 10"), '0', "table $table has nothing of the transaction");
	}
	is($pipeline->table_status('c', 'state'), 'streaming', 'a table that the transaction changed afterwards goes on');
	$pipeline->is_same('the other tables are equal', qw(c free));
}
else
{
	ok($mysql, 'only MySQL leaves it out');
	$pipeline->is_same('what was undone is in no table');
}
$pipeline->stop;
$source->stop;

# 3. No end at all. MariaDB leaves its log as it was; MySQL cuts it when it recovers.
($source, $pipeline) = start($postgres, @args);
my ($file, $begins) = kill_in_big_transaction($source);
cut($file, $begins, 1) unless $mysql;
$source->start;
is_intact($pipeline, 'killed between two events');

($file, $begins) = kill_in_big_transaction($source);
cut($file, $begins, 0) unless $mysql;
$source->start;
is_intact($pipeline, 'killed inside an event');
if (!$mysql)
{
	like($postgres->log_text, qr/breaks off in the middle of an event/, 'the log tells of it');

	# Without sync_binlog the half event may be the trace of more that is lost.
	($file, $begins) = kill_in_big_transaction($source);
	cut($file, $begins, 0);
	push @{ $source->{args} }, '--sync-binlog=0';
	$source->start;
	$pipeline->wait_for_state('failed', 60);
	is($pipeline->status('last_error_sqlstate'), 'YC001', 'without sync_binlog the pipeline fails');
	like($pipeline->status('last_error_detail'), qr/sync_binlog = 0/, 'and says why');
}

done_testing();

# A copy is never in the way of the site, nor the site's locks in the way of other tables: long statements, FLUSH TABLES, LOCK TABLES and
# ALTER TABLE at the source while tables are copied.
# cells: mariadb-15 mysql-18
# takes: 24 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $source = CdcBridge::Source->new(args => ['--max-allowed-packet=64M', '--general-log=1', '--log-output=TABLE']);
my $postgres = CdcBridge::Postgres->new;
sub rows { my ($n, $value) = @_; return join(', ', map { "($_, $value)" } 1 .. $n); }
$source->sql('create database shop', map({ ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values " . rows(600, 0)) } qw(a b c)),
	'create table shop.bare (id int, v int)', 'insert into shop.bare values ' . rows(600, 0),
	'create table shop.large (id int primary key, v longblob)', map { "insert into shop.large values ($_, repeat('x', 1000000))" } 1 .. 48);
# what a table without a key needs there
$source->sql("grant lock tables on shop.* to 'repl'\@'%'") if $source->is_mysql;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 50}')->setup;

# The statement at the source, and the seconds that it took; more than 30 count as an error.
sub timed
{
	my ($statement) = @_;
	my $dbh = $source->connect;
	$dbh->do('set lock_wait_timeout = 30');
	my $started = time();
	my $ok = eval { $dbh->do($statement); 1 };
	diag($@) unless $ok;
	return $ok ? time() - $started : 1000;
}

# A statement in a session of its own, which lasts until it is ended; returns when it runs.
my %running;
sub hold
{
	my ($statement) = @_;
	my $child = fork() // die "fork: $!";
	if (!$child) { my $dbh = $source->connect; eval { $dbh->do($statement) }; POSIX::_exit(0); }
	poll_until(sub { return $source->query_value('select count(*) from information_schema.processlist where info = ' . $source->dbh->quote($statement)) }, 20) or die "$statement does not run";
	$running{$statement} = $child;
	return;
}
sub end
{
	my ($statement) = @_;
	for ($source->query_rows('select id from information_schema.processlist where info = ' . $source->dbh->quote($statement))) { eval { $source->sql("kill $_->[0]") }; }
	waitpid(delete $running{$statement}, 0);
	return;
}
sub begin
{
	my ($options, $tables) = @_;
	$pipeline->stop->drop->drop_target if $pipeline->{created};
	$pipeline->{options} = $options;
	$pipeline->{tables} = $tables;
	$pipeline->start;
	return;
}
my $chunks = sub { my ($table) = @_; return $postgres->psql("select coalesce(max(chunks), 0) from pg_stat_cdc_snapshot where source_table = '$table'"); };

# ---- S1: a long SELECT on a table that is copied, and all statements of the site meanwhile
# it lasts because it waits for a lock by name that another session has
my $gate = $source->connect;
$gate->do(q{select get_lock('gate', 1)});
my $long = q{select get_lock('gate', 300) from shop.a limit 1};
hold($long);
begin('{"snapshot_chunk_rows": 50}', '{shop.a,shop.b,shop.c,shop.bare}');
my $slowest = 0;
poll_until(sub {
	for my $table (qw(a b c bare)) { my $took = timed("update shop.$table set v = v + 1 where id = 7"); $slowest = $took if $took > $slowest; }
	return $postgres->psql(q{select count(*) = 4 and bool_and(state = 'streaming') from pg_stat_cdc_table}) eq 't';
}, 60) or diag($pipeline->describe);
# MySQL: a table without a key waits a second for a lock to write when it does not get one to read
cmp_ok($slowest, '<', 3, sprintf('S1: while a long SELECT runs the copy holds nobody up (%.1f s)', $slowest));
end($long);
$pipeline->wait_for_tables->wait_for_catchup;
$pipeline->is_same('S1: and is whole', qw(a b c));

# ---- S1: somebody else's global lock, as of a backup, does not hold the copy up
my $backup = $source->connect;
$backup->do('flush tables with read lock');
begin('{"snapshot_chunk_rows": 50}', '{shop.a,shop.b}');
ok($postgres->poll(q{select count(*) = 2 and bool_and(state = 'streaming') from pg_stat_cdc_table}, 't', 60), 'S1: the copy goes on under a FLUSH TABLES WITH READ LOCK') or diag($pipeline->describe);
$backup->do('unlock tables');
$backup->disconnect;

# ---- S1: FLUSH TABLES behind a long SELECT: nobody gets at the table, nor do we; the first run says so and begins when it is over
hold($long);
my $flush = 'flush tables shop.a';
hold($flush);
$pipeline->stop->drop->drop_target;
$pipeline->{tables} = '{shop.a,shop.c}';
$postgres->psql($pipeline->start_statement);
$pipeline->{created} = 1;
$pipeline->wait_for_status('last_error', qr/table "shop\.a" of source server "shop" is locked/, 30);
is($pipeline->status('last_error_sqlstate'), '55P03', 'S1: FLUSH TABLES behind a long SELECT: the first run says what it waits for');
end($long);
end($flush);
$pipeline->wait_for_state('streaming', 60)->wait_for_tables->wait_for_catchup;
$pipeline->is_same('S1: then it begins', qw(a c));

# ---- S1: tables that are locked while they are copied: by all workers at once, and the others go on
begin('{"snapshot_chunk_rows": 20, "max_rows_per_second": 250}', '{shop.a,shop.b,shop.c}');
my $begun = q{select string_agg(source_table, ' ' order by source_table) from pg_stat_cdc_snapshot where chunks between 1 and 20};
ok($postgres->poll($begun, qr/^\w \w$/, 30), 'two are being copied');
my @two = split(/ /, $postgres->psql($begun));
my ($third) = grep { my $name = $_; !grep { $_ eq $name } @two } qw(a b c);
my $locker = $source->connect;
$locker->do('lock tables ' . join(', ', map { "shop.$_ write" } @two));
$pipeline->wait_for_table_state($third, 'streaming', 60);
pass('S1: two are locked, and there are two workers: another one is copied all the same');
for my $table (@two)
{
	ok($postgres->poll("select last_error from pg_stat_cdc_table where source_table = '$table'", qq{source table "shop.$table" is locked}, 30), "S1: the row of $table says so") or diag($pipeline->describe);
	is($pipeline->table_status($table, 'state'), 'snapshot', 'it waits');
	is($pipeline->table_status($table, 'last_error_sqlstate'), '55P03', 'with its SQLSTATE');
	like($pipeline->table_status($table, 'last_error_hint'), qr/End the statement or the LOCK TABLES/, 'and a hint');
}
is($pipeline->status('last_error'), '', 'the pipeline is well');
cmp_ok(scalar(my @told = $postgres->log_text =~ /copy of source table "shop\.$two[0]" of pipeline "shop_in" waits/g), '<=', 2, 'the log says it once for each worker');
$locker->do("update shop.$two[0] set v = 77 where id > 300");
$locker->do('unlock tables');
$pipeline->wait_for_tables(60)->wait_for_catchup;
$pipeline->is_same('S1: unlocked, they are copied', qw(a b c));
is($postgres->psql('select count(*) from pg_stat_cdc_table where last_error is not null'), '0', 'and nothing is told any more');

# ---- S2: a copy that takes long, and an ALTER TABLE in the middle of it
begin('{"snapshot_chunk_rows": 20, "max_rows_per_second": 60}', '{shop.a}');
ok($postgres->poll(q{select max(chunks) > 2 from pg_stat_cdc_snapshot}, 't', 30), 'a table is being copied');
my $took = timed(q{alter table shop.a comment = 'in the middle', engine = InnoDB});
cmp_ok($took, '<', 5, sprintf('S2: ALTER TABLE while a table is copied is not held up (%.1f s)', $took));
is($pipeline->table_status('a', 'state'), 'snapshot', 'S2: the copy goes on');

# what the source is sending when this server is held up itself: more than fits into our memory
begin('{"snapshot_workers": 1}', '{shop.large}');
my $blocker;
$postgres->poll(q{select to_regclass('shop.large') is not null}, 't', 30) or die "the target is not made\n" . $pipeline->describe;
open($blocker, '|-', "$postgres->{bindir}/psql", '-qXAt', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', 'postgres') or die "psql: $!";
$blocker->autoflush(1);
print $blocker "begin; lock table shop.large in access exclusive mode;\n";
ok($postgres->poll(q{select count(*) from pg_locks where relation = 'shop.large'::regclass and not granted}, '1', 30), 'the copy waits for a lock here');
my $pages = $chunks->('large');
$took = timed(q{alter table shop.large comment = 'in the middle'});
cmp_ok($took, '<', 15, sprintf('S2: ALTER TABLE of a table whose rows we do not take is not held up by us (%.1f s)', $took));
print $blocker "commit;\n";
close($blocker);
$pipeline->wait_for_tables->wait_for_catchup;
is($pipeline->table_status('large', 'state'), 'streaming', 'S2: the copy comes to its end') or diag($pipeline->describe);
is($pipeline->table_status('large', 'rows_copied'), 48, 'S2: each row was written once');
is($postgres->psql(q{select count(*), sum(length(v)), count(distinct md5(v)) from shop.large}), '48|48000000|1', 'S2: and it is whole');
is($pipeline->status('last_error'), '', 'S2: that is no error');

# the copy of a table without a key is one statement at the source
begin('{"max_rows_per_second": 50}', '{shop.bare}');
ok($postgres->poll(q{select join_file is not null from cdc_bridge.table_state}, 't', 30), 'a table without a key is being copied');
$took = timed(q{alter table shop.bare comment = 'in the middle'});
cmp_ok($took, '<', 15, sprintf('S2: ALTER TABLE while a table without a key is copied: the copy gives way (%.1f s)', $took));
ok($postgres->poll('select last_error from pg_stat_cdc_table', 'copy of source table "shop.bare" has given way', 10), 'S2: its row says so') or diag($pipeline->describe);
$source->sql('delete from shop.bare where id > 60');
$pipeline->wait_for_tables->wait_for_catchup;
is($postgres->psql('select count(*), sum(id) from shop.bare'), '60|1830', 'S2: then it begins again, and is whole');
is($pipeline->table_status('bare', 'last_error'), '', 'S2: and nothing is told any more');

# ---- what we asked for in all that time: no lock but MySQL's on the table without a key
my @locks = grep { !/^LOCK TABLES `shop`\.`bare` (READ|WRITE)$/ || $source->is_mariadb }
  map { $_->[0] } $source->query_rows(q{select convert(argument using utf8mb4) from mysql.general_log where user_host like 'repl%' and argument regexp '^ *(lock|flush|backup)'});
is(join("\n", @locks), '', 'S1: no global lock was asked for');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

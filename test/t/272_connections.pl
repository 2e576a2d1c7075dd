# Connections that die by halves, and other readers with our number: found out, told, tried again without a storm, and the stream goes on
# at the last commit. What cuts and stalls is a proxy of the test's own.
# cells: mariadb-15 mysql-18
# takes: 34 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Proxy;
use CdcBridge::Reader;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $postgres = CdcBridge::Postgres->new;
my $source = CdcBridge::Source->new;
my $proxy = CdcBridge::Proxy->new(upstream => $source);
$source->sql('create database shop', 'create table shop.t (id int primary key, v int, filler varchar(2000))', 'create table shop.log (who int, what int)',
	'create table shop.flood (id int primary key auto_increment, filler varchar(1000))',
	"grant lock tables on shop.* to 'repl'\@'%'", 'insert into shop.t values ' . join(',', map { "($_, 0, '')" } 1 .. 50));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	server_options => { port => $proxy->port, heartbeat_interval => 200, connect_timeout => 3 })->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

# ---- 1. the connection stands and nothing comes

$proxy->stall;
$source->sql('update shop.t set v = 1');
my $begun = time();
my $before = $proxy->connections;
$pipeline->wait_for_state('retrying');
is($pipeline->status('last_error_sqlstate'), '08006', 'B24: a connection on which nothing comes is given up');
like($pipeline->status('last_error_detail'), qr/Nothing came for 1000 ms, although the server should send a heartbeat every 200 ms/, 'and why is told');
ok(poll_until(sub { return time() > $begun + 8; }), 'eight seconds');
cmp_ok($proxy->connections - $before, '<=', 3, 'B24: no storm of connections meanwhile');
is($pipeline->status('last_error_sqlstate'), '08001', 'a server that accepts and says nothing is told as such');
$proxy->pass;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('B24: then it goes on at the last commit');

# ---- the same after a time in which the target took nothing: the server's TCP may try again only after as long a pause, and that is
# no silence of the server. The pause is made by a proxy that is held.

my $pid = $pipeline->status('ingest_pid');
open(my $holder, '|-', "$postgres->{bindir}/psql", '-qXAt', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', 'postgres') or die "psql: $!";
$holder->autoflush(1);
print $holder "begin; lock table shop.flood in share mode;\n";
$postgres->poll(q{select count(*) from pg_locks where relation = 'shop.flood'::regclass and mode = 'ShareLock' and granted}, '1') or die "no lock\n";
# more than we keep: from then on nothing is read
$source->sql('insert into shop.flood (filler) values ' . join(', ', ("(repeat('f', 1000))") x 2000)) for 1 .. 10;
$postgres->poll(q{select count(*) from pg_locks where relation = 'shop.flood'::regclass and not granted}, '1') or die "the worker does not wait\n" . $pipeline->describe;
my $held = time();
poll_until(sub { return time() > $held + 8; });
$proxy->hold;
print $holder "commit;\n";
close($holder);
ok(!poll_until(sub { return $pipeline->status('ingest_pid') ne $pid; }, 4), 'a target that took nothing for long: a pause after it is no lost connection');
$proxy->release;
$pipeline->wait_for_catchup;
is($postgres->psql('select count(*) from shop.flood'), '20000', 'all of it arrives');
is($pipeline->status('ingest_pid'), $pid, 'at the same worker');

# ---- 2. cut at any byte, in the middle of transactions; a row that came twice would show in the table without a key

$source->start_writers(2, sub {
	my ($dbh, $number) = @_;
	$dbh->do('begin');
	for (1 .. 20)
	{
		my $id = 1 + int(rand(50));
		$dbh->do("insert into shop.log values ($number, $id)");
		$dbh->do("update shop.t set v = v + 1, filler = repeat('x', 1000) where id = $id");
	}
	$dbh->do('commit');
});
srand(272);
for my $round (1 .. 6)
{
	my $n = $proxy->connections;
	$proxy->cut(1 + int(rand(100_000)));
	poll_until(sub { return $proxy->connections > $n; }) or die "the pipeline does not come back\n" . $pipeline->describe;
}
$source->stop_writers;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('B24: cut six times in the middle, nothing is lost or doubled');

# ---- 3. refused

$proxy->refuse;
$pipeline->wait_for_state('retrying');
ok(poll_until(sub { return $pipeline->status('last_error_sqlstate') eq '08001'; }), 'an address that resets connections: told');
$proxy->pass;
$pipeline->wait_for_state('streaming');

# ---- 4. another reader with our server_id, and on MySQL our uuid

$postgres->psql("alter server shop options (add server_id '4711')");
my $general = "$source->{dir}/general.log";
$source->sql("set global general_log_file = '$general'", "set global log_output = 'FILE'", 'set global general_log = on');
$pipeline->stop->start->wait_for_state('streaming')->wait_for_catchup;
my ($uuid) = slurp($general) =~ /\@slave_uuid = '([-0-9a-f]{36})'/;
$source->sql('set global general_log = off');
my $dumps = sub { return grep { $_->[4] =~ /^Binlog Dump/ } $source->query_rows('show processlist'); };
ok(poll_until(sub { return $dumps->() == 1; }), 'one reader is there');
my $reader = CdcBridge::Reader->new(source => $source, server_id => 4711, uuid => $uuid);
$pipeline->wait_for_status('last_error_sqlstate', qr/^55006$/);
like($pipeline->status('last_error'), qr/another replica of source server "shop" has our server_id/, 'B26: a reader with our server_id is told');
like($pipeline->status('last_error_hint'), qr/Set another server_id/, 'and what to do');
ok(poll_until(sub { return !$reader->is_alive; }), 'the server lets one of the two in');
$source->sql('insert into shop.log values (3, 3)');
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('B26: nothing comes twice of it');
$postgres->psql("alter server shop options (drop server_id)");
$pipeline->stop->start->wait_for_state('streaming')->wait_for_catchup;
$reader = CdcBridge::Reader->new(source => $source, server_id => 4711);
ok(poll_until(sub { return $dumps->() == 2; }), 'B26: the number that we derive is another one: both read');
ok($reader->is_alive, 'and stay');
$source->sql('insert into shop.log values (4, 4)');
$pipeline->wait_for_catchup;
$pipeline->is_same('undisturbed');

done_testing();

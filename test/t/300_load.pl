# Much of everything, with bounded memory: thousands of tables, tables of a thousand columns, rows above 16 MiB, a target that takes
# nothing for a while, and a transaction of CDC_LOAD_MB megabytes (make test-long: more than 4 GiB, where 32-bit positions end).
# takes: 28 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use POSIX ();
use Test::More;

my $tables = $ENV{CDC_LOAD_TABLES} || 1000;
my $megabytes = $ENV{CDC_LOAD_MB} || 24;
my $source = CdcBridge::Source->new(args => ['--max-allowed-packet=256M', '--max-connections=200', '--table-open-cache=400']);
my $postgres = CdcBridge::Postgres->new(conf => "max_locks_per_transaction = 256\n");
$source->sql('create database shop', 'create table shop.first (id int primary key, v int)', 'insert into shop.first values (1, 1)');
$source->sql('create database wide');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;

sub worker { return $pipeline->status('ingest_pid'); }
sub private_kb { my ($pid) = @_; return slurp("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m ? $1 : 0; }
# largest private memory of the worker while CODE runs in a child process and until DONE says so
sub peak_while
{
	my ($code, $done) = @_;
	my ($peak, $pid) = (0, worker());
	my $child = fork() // die "fork: $!\n";
	if (!$child) { my $ok = eval { $code->(); 1 }; warn $@ unless $ok; POSIX::_exit($ok ? 0 : 1); }
	my ($ended, $arrived) = (0, 0);
	poll_until(sub {
		my $now = private_kb($pid);
		$peak = $now if $now > $peak;
		$ended ||= waitpid($child, POSIX::WNOHANG()) == $child && ($? == 0 || die "the load could not be written\n");
		return $ended && ($arrived = $done->());
	}, $ENV{CDC_LOAD_SECONDS} || 300);
	ok($arrived, 'it arrived') or diag($pipeline->describe);
	is(worker(), $pid, 'the same worker all the while') or diag($pipeline->describe);
	return $peak;
}

# ---- tables by the thousand: what an idle one costs the worker
$source->sql('create database many', (map { "create table many.t$_ (id int primary key, name varchar(40), at datetime(3), price decimal(10, 2), note text)" } 1 .. $tables),
	(map { "insert into many.t$_ values (1, 'first', now(3), 1.50, 'x')" } 1 .. $tables));
my $many = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'many_in', schema => 'many')->start;
$many->wait_for_state('streaming', 180)->wait_for_tables(180);
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where pipeline = 'many_in' and state = 'streaming'}), $tables, 'all tables stream');
$_->stop->start->wait_for_state('streaming') for $pipeline, $many;    # what the copy needed is given back
# what a worker has once, as the ring of packets, is in it
my $measure = sub { return (private_kb($many->status('ingest_pid')) - private_kb(worker())) / $tables; };
my $idle = $measure->();
$source->sql(map { "update many.t$_ set price = price + 1 where id = 1" } 1 .. $tables);
$many->wait_for_catchup(120);
my $changed = $measure->();
note(sprintf('%d tables: %.1f kB for each idle, %.1f kB for each that has changed', $tables, $idle, $changed));
cmp_ok($idle, '<', 20, 'memory of an idle table (kB)');
cmp_ok($changed, '<', 100, 'memory of a table that has changed once (kB)');
my $some = $tables < 10 ? $tables : 10;
is($postgres->psql('select ' . join(' + ', map { "(select price from many.t$_)" } 1 .. $some)), sprintf('%.2f', 2.5 * $some), 'the changes are there');
$many->stop->drop->drop_target;

# ---- a thousand columns, over which an image's bits take many bytes
my @columns = map { sprintf('c%03d %s', $_, (qw(int bigint smallint date tinyint))[ $_ % 5 ]) } 1 .. 1000;
my $row = sub { my ($id, $plus) = @_; return join(', ', $id, map { my $n = $_ + $plus; $n % 7 == 0 ? 'null' : (qw(1 2 3 '2024-02-29' 4))[ $_ % 5 ] } 1 .. 1000); };
$source->sql('create table wide.columns (id int primary key, ' . join(', ', @columns) . ')',
	map { 'insert into wide.columns values (' . $row->($_, $_) . ')' } 1 .. 30);
my $wide = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'wide_in', schema => 'wide')->start;
$wide->wait_for_state('streaming')->wait_for_tables;
$source->sql(map { 'replace into wide.columns values (' . $row->($_, 3 * $_) . ')' } 10 .. 40);
$source->sql('update wide.columns set c500 = 77, c1000 = null where id between 1 and 5', 'delete from wide.columns where id = 6');
$wide->wait_for_catchup;
$wide->is_same('a thousand columns', 'columns');
$wide->stop->drop->drop_target;

# ---- rows above 16 MiB, where the protocol cuts packets: read by the snapshot, streamed, with several in one event
$source->sql('create table shop.large (id int primary key, body longblob, note longtext)',
	q{insert into shop.large select 1, repeat('ab', 9000000), repeat('z', 100)},
	q{insert into shop.large select 2, repeat(x'00', 16777215), repeat('ä', 4000000)});
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.large')});
$pipeline->wait_for_table_state('large', 'streaming');
$source->sql(q{insert into shop.large select 3, repeat('xy', 20000000), null}, q{update shop.large set note = 'small again' where id = 2},
	q{update shop.large set body = repeat('q', 16777216) where id = 1},
	q{insert into shop.large select id + 10, body, note from shop.large where id < 3});
$pipeline->wait_for_catchup;
is($postgres->psql('select id, length(body), encode(sha256(body), $$hex$$), length(note), encode(sha256(convert_to(note, $$UTF8$$)), $$hex$$) from shop.large order by id'),
	join("\n", map { join('|', map { $_ // '' } @$_) } $source->query_rows('select id, length(body), sha2(body, 256), char_length(note), sha2(note, 256) from shop.large order by id')),
	'rows above 16 MiB');

# ---- the target takes nothing: the source goes on writing, the worker's memory stays as it is, and nothing is connected anew
$source->sql('create table shop.flood (id int primary key auto_increment, filler varchar(1000))');
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.flood')});
$pipeline->wait_for_table_state('flood', 'streaming');
open(my $holder, '|-', "$postgres->{bindir}/psql", '-qXAt', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', 'postgres') or die "psql: $!";
$holder->autoflush(1);
print $holder "begin; lock table shop.flood in share mode;\n";
$postgres->poll(q{select count(*) from pg_locks where relation = 'shop.flood'::regclass and mode = 'ShareLock' and granted}, '1') or die 'no lock';
my $rows = int($megabytes * 1000);
my $released = 0;
my $peak = peak_while(sub {
	for (my $left = $rows; $left > 0; $left -= 5000)
	{
		$source->sql('insert into shop.flood (filler) values ' . join(', ', map { "(repeat('f', 1000))" } 1 .. ($left < 5000 ? $left : 5000)));
	}
}, sub {
	if (!$released++) { print $holder "commit;\n"; close($holder); }
	return $postgres->psql('select count(*) from shop.flood') == $rows;
});
note(sprintf('a slow target, %d MB: peak %d MB', $megabytes, $peak / 1024));
cmp_ok($peak, '<', 200_000, 'memory of the worker while it cannot write (kB)');

# ---- one transaction of many megabytes, in one PostgreSQL transaction
$peak = peak_while(sub { $source->sql('start transaction', 'update shop.flood set filler = repeat(\'g\', 999)', 'delete from shop.flood where id % 3 = 0', 'commit'); },
	sub { return $postgres->psql(q{select count(*) filter (where left(filler, 1) = 'f') || ' ' || count(*) from shop.flood}) =~ /^0 (\d+)$/ && $1 < $rows; });
note(sprintf('one transaction, %d MB: peak %d MB', 2 * $megabytes, $peak / 1024));
cmp_ok($peak, '<', 200_000, 'memory of the worker in a large transaction (kB)');
$pipeline->wait_for_catchup;
is($postgres->psql('select count(*), sum(id), sum(length(filler)) from shop.flood'),
	join('|', @{ ($source->query_rows('select count(*), sum(id), sum(length(filler)) from shop.flood'))[0] }), 'all of it');
my ($file, $offset) = $source->binlog_position;
note("the log stands at $file:$offset");
# the log's positions have 32 bits, and a file is longer than that only within one transaction: what follows it is found again
$source->sql('insert into shop.first values (2, 2)');
$pipeline->wait_for_catchup;
$pipeline->stop->start->wait_for_state('streaming');
$source->sql('insert into shop.first values (3, 3)');
$pipeline->wait_for_catchup->is_same('what follows, and after a restart', 'first');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

# One large transaction into files: the memory of the worker does not grow with it, what it keeps on disk until the commit is told and goes away, and
# a pipeline that is stopped in its middle stops at once and ships all of it later.
# CDC_LOAD_MB (default 30) is about the size of the files; 2000 makes 5 million rows.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $megabytes = $ENV{CDC_LOAD_MB} // 30;
my $rows = $megabytes * 2500;
my $long = $megabytes >= 200;
my $postgres = CdcBridge::Postgres->new(conf => $long ? "max_wal_size = 8GB\n" : "logical_decoding_work_mem = 4MB\n");
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
$postgres->psql('create schema shop; create table shop.big (id bigint primary key, n int, v text)');
$export->start->wait_for_state('streaming');
my $slot = $export->status('slot_name');
my $on_disk = sub { return $postgres->psql("select coalesce(sum(size), 0) from pg_ls_replslotdir('$slot') where name like 'xid-%'"); };
my $memory = sub {
	my ($pid) = @_;
	my ($kb) = (eval { slurp("/proc/$pid/status") } // '') =~ /^RssAnon:\s+(\d+)/m;
	return ($kb // 0) / 1024;
};

# what a beginning is told by comes in pieces of its own
$export->wait_for_all;
my $ends = lines_of()->{end};

# ---- a transaction whose commit is shipped while the memory is looked at

my ($peak, $disk, $samples) = (0, 0, 0);
my $pid = $export->status('pid');
my $before = $memory->($pid);
open(my $session, '|-', $postgres->bindir . "/psql -XAtq -h '" . $postgres->host . "' -p " . $postgres->port . ' -U postgres -d postgres > /dev/null 2>&1') or die "psql: $!";
$session->autoflush(1);
my $begun = time();
print $session "begin; insert into shop.big select i, 1, 'value ' || i from generate_series(1, $rows) i; update shop.big set n = 2 where id % 10 = 0; select 'all written';\n";
my $look = sub {
	my $now = $memory->($pid);
	$peak = $now if $now > $peak;
	$samples++;
	my $kept = $on_disk->();
	$disk = $kept if $kept > $disk;
	return;
};
poll_until(sub { $look->(); return $disk > 0 && $postgres->psql(q{select count(*) from pg_stat_activity where query = 'select ''all written'';' and state = 'idle in transaction'}) eq '1' },
	$long ? 1800 : undef) or die "nothing is kept on disk\n";
my $committed = time();
print $session "commit;\n";
my $done = poll_until(sub { $look->(); return $export->status('transactions') eq '1'; }, $long ? 1800 : undef);
close($session);
ok($done, "a transaction of $rows rows is shipped") or diag($export->describe);
diag(sprintf('%d rows: written in %.1f s, in the files %.1f s later; memory %.1f MB before, %.1f MB at most (%d samples); %.0f MB kept on disk; files %.0f MB',
	$rows, $committed - $begun, time() - $committed, $before, $peak, $samples, $disk / 1e6, (-s ($export->files)[0]) / 1e6));
cmp_ok($peak, '<', ($long ? 64 : 4) + 60, 'P17: the memory of the worker does not grow with it');
cmp_ok($disk, '>', 0, 'what is kept until the commit can be looked at');
is($on_disk->(), 0, 'and is gone after it');
cmp_ok($postgres->psql("select spill_bytes from pg_stat_replication_slots where slot_name = '$slot'"), '>', 0, 'the server\'s own view tells of it');

# a reader of lines, as JSON of so many would take long
sub lines_of
{
	my %count;
	for my $file ($export->files)
	{
		open(my $in, '<:raw', $file) or die "$file: $!";
		while (my $line = <$in>)
		{
			my $kind = $line =~ /^\{"cdc_bridge"/ ? 'end' : $line =~ /"op":"(\w)"/ ? $1 : 'other';
			$count{$kind}++;
			$count{sum}{$kind} += $1 if $line =~ /"after":\{"id":(\d+),/;
		}
	}
	return \%count;
}
my $count = lines_of();
my $tenth = int($rows / 10);
is_deeply([ @$count{qw(c u)} ], [ $rows, $tenth ], 'P12: every row is there once');
is($count->{sum}{c}, $rows * ($rows + 1) / 2, 'P12: and is the right one');
is($count->{sum}{u}, 10 * $tenth * ($tenth + 1) / 2, 'P12: updates too');
is($count->{end}, $ends + 1, 'in one piece: a transaction is never split');

# ---- stopped in the middle

my $file = ($export->files)[-1];
my $size = -s $file;
my $client = fork() // die "fork: $!";
if (!$client) { $postgres->psql('update shop.big set n = 3'); POSIX::_exit(0); }
my $until = time() + ($long ? 600 : 60);
1 until -s $file > $size + 1_000_000 || time() > $until;
$begun = time();
$export->stop;
my $took = time() - $begun;
waitpid($client, 0);
my $inside = qx(tail -c 100000 '$file' | grep -c '^{"cdc_bridge"') + 0 == 0;
diag(sprintf('stopped after %.1f s, %s', $took, $inside ? 'inside of the transaction' : 'when it was over'));
cmp_ok($took, '<', 20, 'a pipeline can be stopped while it ships a large transaction');
$export->start->wait_for_state('streaming')->wait_for_all($long ? 1800 : undef);
$count = lines_of();
is_deeply([ @$count{qw(c u)} ], [ $rows, $tenth + $rows ], 'and ships it whole when it is started again');
is($on_disk->(), 0, 'nothing is kept on disk');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

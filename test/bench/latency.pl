#!/usr/bin/perl
# latency: from just before a statement is sent to the source to the commit of its rows in PostgreSQL, at steady rates. When a
# transaction was committed is read from its WAL record afterwards: nothing looks at the table meanwhile, and it is PostgreSQL's
# time whatever the pipeline does about commit timestamps. Both clocks are this machine's.
use strict;
use warnings;

use Bench qw(run_shell);

my $bench = Bench->new('latency');
my $seconds = $ENV{BENCH_SECONDS} || 20;
my $tx_rows = $ENV{BENCH_LATENCY_TX} || 1;
my @rates = split(' ', $ENV{BENCH_RATES} || '1000 5000');
$bench->start_servers;
my ($source, $postgres, $session, $pipeline) = ($bench->source, $bench->postgres, $bench->session, $bench->pipeline);
$source->sql('create table bench.tick (id bigint not null primary key, sent_us bigint not null, pad varchar(100) not null) default charset utf8mb4',
	'create table bench.marker (n int primary key)');
$pipeline->start->wait_for_tables;

my $first = 1;
my %all;
for my $round ($bench->rounds)
{
	for my $rate (@rates)
	{
		my $lsn = $session->ask('select pg_current_wal_insert_lsn()');
		my ($output) = run_shell(join(' ', $bench->program('writer'), "$source->{dir}/s.sock", 'root', $first, $rate, $seconds, $tx_rows));
		my ($sent, $took, $late) = split(' ', $output);
		my $marker = ++$bench->{marker};
		$source->sql("insert into bench.marker values ($marker)");
		$bench->wait_for_marker($marker);
		load_commit_times($lsn);
		# what was sent in the first second also warms caches
		my ($count, $unknown, $least, @found) = split(/\|/, $session->ask(
			'select count(ms), count(*) - count(ms), min(ms), ' . join(', ', map { "percentile_disc($_) within group (order by ms)" } 0.5, 0.99) . ', max(ms) from ('
			  . "select (extract(epoch from c.at) * 1000000 - sent_us) / 1000.0 ms, sent_us, min(sent_us) over () first_us from bench.tick t left join benchop.commits c on c.xid = t.xmin::text where id >= $first) x "
			  . "where sent_us >= first_us + least(1000000, $seconds * 500000)"));
		die "$unknown rows have no commit in the log, or were there $least ms after they were sent\n" if $unknown || $least < 0;
		$bench->say_what(sprintf('round %d, %d rows/s: p50 %.1f, p99 %.1f, max %.1f ms over %d rows; the writer was %.1f ms late at worst, and took %.1f s', $round, $rate, @found, $count, $late, $took));
		push @{ $all{$rate}{$_} }, shift @found for qw(p50 p99 max);
		push @{ $all{$rate}{late} }, $late;
		$bench->check_equal("rows at $rate/s", sent => $sent, arrived => $session->ask("select count(*) from bench.tick where id >= $first")) if $round == 1;
		$first += $sent;
	}
}
for my $rate (@rates)
{
	$bench->value("$rate rows/s: $_", Bench::median(@{ $all{$rate}{$_} }), 'ms', $_ eq 'p99' && $rate == 5000 ? 30 : undef) for qw(p50 p99 max late);
}
$bench->finish;

# The commits since LSN from the write-ahead log: transaction, also each of its subtransactions, and time.
sub load_commit_times
{
	my ($lsn) = @_;
	local $ENV{TZ} = 'UTC';
	my $end = $session->ask('select pg_switch_wal()');
	my $file = $bench->folder . '/commits';
	open(my $in, '-|', $postgres->bindir . '/pg_waldump', '--rmgr=Transaction', "--start=$lsn", "--end=$end", '--path=' . $postgres->dir . '/data/pg_wal') or die "pg_waldump: $!\n";
	open(my $out, '>', $file) or die "$file: $!\n";
	while (my $line = <$in>)
	{
		my ($xid, $at) = $line =~ /tx:\s*(\d+),.*desc: COMMIT (\d\S+ \S+)/ or next;
		my ($subxids) = $line =~ /subxacts: ([\d ]+)/;
		print $out map { "$_\t${at}Z\n" } $xid, split(' ', $subxids // '');
	}
	close($in);
	close($out);
	$postgres->psql("set client_min_messages = warning; drop table if exists benchop.commits; create unlogged table benchop.commits (xid text, at timestamptz); copy benchop.commits from '$file'; analyze benchop.commits, bench.tick");
	return;
}

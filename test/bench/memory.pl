#!/usr/bin/perl
# memory: the most memory that the pipeline's workers take for themselves (RssAnon: without shared buffers and program text) while
# one source transaction of BENCH_BIG_ROWS rows arrives in one PostgreSQL transaction.
use strict;
use warnings;

use Bench qw(checksum_source checksum_target);
use CdcBridge::Env qw(slurp);
use POSIX ();
use Time::HiRes qw(time);

my $bench = Bench->new('memory');
my $rows = $ENV{BENCH_BIG_ROWS} || 5_000_000;
$bench->start_servers;
my ($source, $postgres, $session, $pipeline) = ($bench->source, $bench->postgres, $bench->session, $bench->pipeline);
$bench->create_table('big', 0);
$source->sql('create table bench.marker (n int primary key)');
$pipeline->start->wait_for_tables;
$bench->say_what("one transaction of $rows rows");

# the writer is a process of its own: sampling goes on from before the first event to after the commit
my $committed = $bench->folder . '/committed';
my $writer = fork() // die "fork: $!\n";
if (!$writer)
{
	my $ok = eval { $bench->fill_table('big', 1, $rows); note_time(); $source->sql('insert into bench.marker values (1)'); 1 };
	warn $@ unless $ok;
	POSIX::_exit($ok ? 0 : 1);
}
my ($peak, $before, $whole, $samples, $next_list, %worker) = (0, 0, 0, 0, 0);
my $deadline = time() + ($ENV{BENCH_TIMEOUT} || 3600);
my $written = 0;
while (1)
{
	if (time() > $next_list)
	{
		%worker = map { split(/\|/, $_) } split(/\n/, $session->ask("select pid, backend_type from pg_stat_activity where backend_type like 'cdc_bridge%worker'"));
		$next_list = time() + 0.05;
		last if $session->ask('select count(*) from bench.marker') eq '1';
		if (!$written && waitpid($writer, POSIX::WNOHANG()) == $writer)
		{
			die "the load could not be written\n" if $?;
			$written = 1;
		}
		die "the transaction did not arrive\n" . $pipeline->describe if time() > $deadline;
	}
	for my $pid (keys %worker)
	{
		my ($anon, $most) = memory_of($pid);
		$before ||= $anon;
		$peak = $anon if $anon > $peak;
		$whole = $most if $most > $whole;
	}
	$samples++;
	select(undef, undef, undef, 0.02);
}
my $arrived = time();
waitpid($writer, 0) unless $written;
$bench->record('one transaction, committed to visible', $rows, $arrived - slurp($committed));

my $transactions = $session->ask('select count(*) from (select xmin::text from bench.big group by 1) x');
$bench->check_equal('PostgreSQL transactions', expected => 1, found => $transactions);
$bench->check_equal('rows', source => checksum_source($source, 'bench.big'), pipeline => checksum_target($postgres, 'bench.big'));
die "no worker was seen\n" unless $peak;
$bench->value('peak of a worker without shared buffers', $peak / 1024, 'MB', 150);
$bench->value('the same when the transaction began', $before / 1024, 'MB');
$bench->value('peak with shared buffers (VmHWM)', $whole / 1024, 'MB');
$bench->value('samples', $samples, '');
$bench->finish;

sub note_time
{
	open(my $out, '>', $committed) or die "$committed: $!\n";
	printf $out '%.6f', time();
	close($out);
	return;
}

sub memory_of
{
	my ($pid) = @_;
	open(my $in, '<', "/proc/$pid/status") or return (0, 0);
	local $/;
	my $text = <$in> // '';
	return map { $text =~ /^$_:\s*(\d+) kB/m ? $1 : 0 } qw(RssAnon VmHWM);
}

#!/usr/bin/perl
# hot: catching up with a load that updates 1,000 keys in 95 % of its changes, with a session elsewhere that holds an old snapshot
# and without. Under such a snapshot no version of a row can be pruned, so whoever writes each version walks ever longer chains.
use strict;
use warnings;

use Bench qw(checksum_source checksum_target);
use Bench::Session;

my $bench = Bench->new('hot');
$bench->start_servers;
my ($source, $postgres, $session, $pipeline) = ($bench->source, $bench->postgres, $bench->session, $bench->pipeline);
my $rows = $bench->rows;
$bench->create_table('item', $rows);
$bench->write_marker;
$pipeline->start->wait_for_tables($ENV{BENCH_TIMEOUT} || 3600)->stop;
my $old = Bench::Session->new($postgres);

for my $round ($bench->rounds)
{
	$bench->take_turns($round, 'hot: ', plain => sub { return catch_up(); }, 'old snapshot' => sub { return catch_up($old); });
}
$bench->check_equal('rows', source => checksum_source($source, 'bench.item'), pipeline => checksum_target($postgres, 'bench.item'));
$bench->ratio('hot keys under an old snapshot', 'hot: old snapshot', 'hot: plain', 0.5);
$bench->finish;

sub catch_up
{
	my ($holder) = @_;
	my $transactions = $bench->make_load('hot', $rows);
	my $changes = $postgres->psql('select count(*) from benchop.stage');
	my $marker = $bench->write_load($transactions);
	if ($holder)
	{
		$holder->ask('begin isolation level repeatable read');
		$holder->ask('select count(*) from bench.item');
	}
	my $seconds = $bench->time_pipeline($marker);
	$holder->ask('rollback') if $holder;
	$pipeline->stop;
	$postgres->psql('vacuum full bench.item');
	return ($changes, $seconds);
}

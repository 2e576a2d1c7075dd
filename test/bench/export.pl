#!/usr/bin/perl
# export: how long it takes to read a log of inserts and updates to its end and to throw away what it says. By outgoing pipelines, which decode in
# the server (records as they are, and written in both formats), and by pg_recvlogical into /dev/null: with our output plugin, and with those of
# PostgreSQL. Every reader has a slot of its own over the same log. And how long pipelines take to copy the table: with one process and with two.
use strict;
use warnings;

use Bench;
use Bench::Outgoing;
use Time::HiRes qw(time);

my $bench = Bench->new('export');
$bench->start_postgres;
my $postgres = $bench->postgres->allow_output_plugin;
my $outgoing = Bench::Outgoing->new($bench);
my $rows = $bench->rows;

my @readers = (
	pgoutput => [ 'pgoutput', 'proto_version=1', 'publication_names=everything' ],
	'pgoutput, binary' => [ 'pgoutput', 'proto_version=1', 'publication_names=everything', 'binary=true' ],
	test_decoding => ['test_decoding'],
	'plain JSON' => [ 'cdc_bridge', 'format=json' ],
	'Debezium JSON' => [ 'cdc_bridge', 'format=debezium-json' ],
	'nothing shipped' => [ 'cdc_bridge', 'tables=none.none' ],
);
my %reader = @readers;
my @pipelines = (
	'pipeline, records' => [ 'records', 'debezium-json' ],
	'pipeline, plain JSON' => [ 'documents', 'json' ],
	'pipeline, Debezium JSON' => [ 'documents', 'debezium-json' ],
);
my %pipeline = @pipelines;
my %slot = map { my $slot = lc($_) =~ s/\W+/_/gr; ($_ => $slot) } keys %reader;

$outgoing->make_table;
$postgres->psql("create server documents foreign data wrapper cdc_null; create server records foreign data wrapper cdc_null options (write_format 'false')");
for my $round ($bench->rounds)
{
	$postgres->psql(join('', map { "select pg_create_logical_replication_slot('$slot{$_}', '$reader{$_}[0]');" } sort keys %reader));
	$outgoing->make_pipeline($_, $pipeline{$_}[0], qq({"format": "$pipeline{$_}[1]", "snapshot": "never"})) for sort keys %pipeline;
	my ($end, $changes) = $outgoing->write_log($round);
	if ($round == 1)
	{
		my %told = map { ($_ => $postgres->psql("select count(*) from pg_logical_slot_peek_changes('$slot{$_}', null, null" . join('', map { /^(.*?)=(.*)/; ", '$1', '$2'" } @{ $reader{$_} }[ 1 .. $#{ $reader{$_} } ]) . ") where data !~ '^(BEGIN|COMMIT|table cdc_bridge\\.)'")) } 'test_decoding', 'plain JSON', 'Debezium JSON';
		$bench->check_equal('changes', written => $changes, %told);
	}
	$bench->take_turns($round, '', (map { my $name = $_; ($name => sub { return $outgoing->read_all($slot{$name}, $end, $changes, @{ $reader{$name} }[ 1 .. $#{ $reader{$name} } ]); }) } map { $readers[ 2 * $_ ] } 0 .. $#readers / 2),
		(map { my $name = $_; ($name => sub { return $outgoing->ship_all($name, $end, $changes); }) } map { $pipelines[ 2 * $_ ] } 0 .. $#pipelines / 2),
		(map { my $workers = $_; ("copy by $workers" => sub { return copy_all($workers, $rows); }) } 1, 2));
	$bench->check_equal('shipped', written => $changes, map { ($_ => $postgres->psql("select changes from pg_stat_cdc_export where pipeline = '$_'")) } sort keys %pipeline) if $round == 1;
	$postgres->psql(join('', (map { "select pg_drop_replication_slot('$slot{$_}');" } sort keys %reader), map { "select cdc_drop_pipeline('$_');" } sort keys %pipeline));
	$outgoing->wait_until('select count(*) = 0 from pg_replication_slots', 0.05);
}
$bench->ratio('records in process against pgoutput, binary', 'pipeline, records', 'pgoutput, binary', 4);
$bench->ratio('Debezium JSON in process against pgoutput', 'pipeline, Debezium JSON', 'pgoutput', 2.5);
$bench->ratio('plain JSON in process against pgoutput', 'pipeline, plain JSON', 'pgoutput');
$bench->ratio('plain JSON against pgoutput', 'plain JSON', 'pgoutput');
$bench->ratio('Debezium JSON against pgoutput', 'Debezium JSON', 'pgoutput');
$bench->ratio('plain JSON against test_decoding', 'plain JSON', 'test_decoding');
$bench->ratio('copy by two processes against one', 'copy by 2', 'copy by 1');
$bench->finish;

# From the call that makes the pipeline, its slot included, until all rows are in its sink.
sub copy_all
{
	my ($workers, $copied) = @_;
	my $start = time();
	$outgoing->session->ask("select cdc_start_pipeline('copy', sink => 'documents', tables => '{bench.*}', options => '{\"snapshot_workers\": $workers}')");
	$outgoing->wait_until("select state = 'streaming' from pg_stat_cdc_export where pipeline = 'copy'", 0.003);
	my $seconds = time() - $start;
	$postgres->psql("select cdc_drop_pipeline('copy')");
	return ($copied, $seconds);
}

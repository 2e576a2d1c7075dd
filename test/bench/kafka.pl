#!/usr/bin/perl
# kafka: how long it takes to read a log of inserts and updates to its end and to have it in topics of a broker on this machine, committed. Beside it
# pg_recvlogical with pgoutput into /dev/null, which writes nothing anywhere. Every reader has a slot of its own over the same log.
use strict;
use warnings;

use Bench;
use Bench::Outgoing;
use CdcBridge::Kafka;

my $bench = Bench->new('kafka');
$bench->start_postgres;
my $kafka = CdcBridge::Kafka->new(heap => '1g', jvm => ['-XX:TieredStopAtLevel=4']);
my $postgres = $bench->postgres->allow_output_plugin;
my $outgoing = Bench::Outgoing->new($bench);
my %pipeline = ('Kafka, plain JSON' => 'json', 'Kafka, Debezium JSON' => 'debezium-json');

$outgoing->make_table;
$postgres->psql("create server events foreign data wrapper cdc_kafka options (bootstrap_servers '${\ $kafka->address}')");
for my $round ($bench->rounds)
{
	$postgres->psql("select pg_create_logical_replication_slot('pgoutput', 'pgoutput')");
	$outgoing->make_pipeline("$_ $round", 'events', qq({"format": "$pipeline{$_}", "snapshot": "never", "topic": "$pipeline{$_}.$round", "schema_changes": "ignore"})) for sort keys %pipeline;
	my ($end, $changes) = $outgoing->write_log($round);
	$bench->take_turns($round, '', pgoutput => sub { return $outgoing->read_all('pgoutput', $end, $changes, 'proto_version=1', 'publication_names=everything'); }, map { my $name = $_; ($name => sub { return $outgoing->ship_all("$name $round", $end, $changes); }) } sort keys %pipeline);
	if ($round == 1)
	{
		my %there;
		for my $name (sort keys %pipeline)
		{
			my $text = $kafka->kcat('-C', '-q', '-e', '-t', "$pipeline{$name}.$round", '-o', 'beginning', '-X', 'isolation.level=read_committed', '-f', "\n");
			$there{$name} = length($text);
		}
		$bench->check_equal('messages', written => $changes, %there);
	}
	$postgres->psql("select pg_drop_replication_slot('pgoutput');" . join('', map { "select cdc_drop_pipeline('$_ $round');" } sort keys %pipeline));
	$outgoing->wait_until('select count(*) = 0 from pg_replication_slots', 0.05);
}
$bench->ratio('Debezium JSON in Kafka against pgoutput into nothing', 'Kafka, Debezium JSON', 'pgoutput', 0.7);
$bench->ratio('plain JSON in Kafka against pgoutput into nothing', 'Kafka, plain JSON', 'pgoutput', 0.7);
$bench->finish;

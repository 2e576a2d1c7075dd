#!/usr/bin/perl
# kafka: how long it takes to read a log of inserts and updates to its end and to have it in topics of a broker on this machine, committed. Beside it
# pg_recvlogical with pgoutput into /dev/null, which writes nothing anywhere. Every reader has a slot of its own over the same log.
use strict;
use warnings;

use Bench qw(run_shell);
use Bench::Session;
use CdcBridge::Kafka;
use Time::HiRes qw(time);

my $bench = Bench->new('kafka');
$bench->start_postgres;
my $kafka = CdcBridge::Kafka->new(heap => '1g', jvm => ['-XX:TieredStopAtLevel=4']);
my $postgres = $bench->postgres->allow_output_plugin;
my $session = Bench::Session->new($postgres);
my $rows = $bench->rows;
my $size = $rows < 1000 ? $rows : 1000;
my %pipeline = ('Kafka, plain JSON' => 'json', 'Kafka, Debezium JSON' => 'debezium-json');

$postgres->psql('create table bench.item (id bigint primary key, a int not null, b bigint, price numeric(12,2) not null, name varchar(40) not null, note text, made timestamptz not null, ratio float8 not null, flag smallint not null); '
	  . 'create publication everything for tables in schema bench; create extension cdc_bridge; '
	  . "create server events foreign data wrapper cdc_kafka options (bootstrap_servers '${\ $kafka->address}')");
for my $round ($bench->rounds)
{
	$postgres->psql("select pg_create_logical_replication_slot('pgoutput', 'pgoutput')");
	for my $name (sort keys %pipeline)
	{
		$postgres->psql("select cdc_start_pipeline('$name $round', sink => 'events', tables => '{bench.*}', options => '{\"format\": \"$pipeline{$name}\", \"snapshot\": \"never\", \"topic\": \"$pipeline{$name}.$round\", \"schema_changes\": \"ignore\"}')");
		wait_until("select state = 'streaming' from pg_stat_cdc_export where pipeline = '$name $round'", 0.05);
		$postgres->psql("select cdc_stop_pipeline('$name $round')");
	}
	wait_until('select count(pid) = 0 from pg_stat_cdc_export', 0.05);
	$postgres->psql(<<"SQL");
truncate bench.item;
do \$\$ begin
  for i in 0 .. $rows / $size - 1 loop
    insert into bench.item select ${\ Bench::row_target('id', $round) } from generate_series(i * $size + 1::bigint, (i + 1) * $size) id;
    commit;
  end loop;
  for i in 0 .. $rows / $size / 2 - 1 loop
    update bench.item set a = a + 1, note = 'changed' where id between i * $size + 1 and (i + 1) * $size;
    commit;
  end loop;
end \$\$;
SQL
	my $end = $postgres->psql('select pg_current_wal_insert_lsn()');
	my $changes = $postgres->psql(q{select count(*), count(*) filter (where note = 'changed') from bench.item}) =~ s/(\d+)\|(\d+)/$1 + $2 + 1/er;
	$bench->take_turns($round, '', pgoutput => sub { return read_all($end, $changes); }, map { my $name = $_; ($name => sub { return ship_all("$name $round", $end, $changes); }) } sort keys %pipeline);
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
	wait_until('select count(*) = 0 from pg_replication_slots', 0.05);
}
$bench->ratio('Debezium JSON in Kafka against pgoutput into nothing', 'Kafka, Debezium JSON', 'pgoutput', 0.7);
$bench->ratio('plain JSON in Kafka against pgoutput into nothing', 'Kafka, plain JSON', 'pgoutput', 0.7);
$bench->finish;

sub read_all
{
	my ($end, $changes) = @_;
	my (undef, $seconds) = run_shell(join(' ', $postgres->bindir . '/pg_recvlogical', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres', '--slot=pgoutput',
		'--start', '--no-loop', "--endpos=$end", '-F', '0', '-s', '0', '-f', '-', '-o', 'proto_version=1', '-o', 'publication_names=everything', '> /dev/null'));
	return ($changes, $seconds);
}

sub wait_until
{
	my ($sql, $pause) = @_;
	my $until = time() + 600;
	while (1)
	{
		last if $session->ask($sql) eq 't';
		die "not within ten minutes: $sql\n" if time() > $until;
		select(undef, undef, undef, $pause);
	}
	return;
}

# From the call that starts the pipeline until all is committed in its topic.
sub ship_all
{
	my ($name, $end, $changes) = @_;
	my $start = time();
	$session->ask("select cdc_start_pipeline('$name')");
	wait_until("select coalesce(decoded_lsn >= '$end', false) and pid is not null from pg_stat_cdc_export where pipeline = '$name'", 0.003);
	my $seconds = time() - $start;
	$postgres->psql("select cdc_stop_pipeline('$name')");
	wait_until('select count(pid) = 0 from pg_stat_cdc_export', 0.01);
	return ($changes, $seconds);
}

#!/usr/bin/perl
# export: how long it takes to read a log of inserts and updates to its end and to throw away what it says. By outgoing pipelines, which decode in
# the server (records as they are, and written in both formats), and by pg_recvlogical into /dev/null: with our output plugin, and with those of
# PostgreSQL. Every reader has a slot of its own over the same log. And how long pipelines take to copy the table: with one process and with two.
use strict;
use warnings;

use Bench qw(run_shell);
use Bench::Session;
use Time::HiRes qw(time);

my $bench = Bench->new('export');
$bench->start_postgres;
my $postgres = $bench->postgres->allow_output_plugin;
my $session = Bench::Session->new($postgres);
my $rows = $bench->rows;
my $size = $rows < 1000 ? $rows : 1000;

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

$postgres->psql('create table bench.item (id bigint primary key, a int not null, b bigint, price numeric(12,2) not null, name varchar(40) not null, note text, made timestamptz not null, ratio float8 not null, flag smallint not null); '
	  . 'create publication everything for tables in schema bench; create extension cdc_bridge; '
	  . "create server documents foreign data wrapper cdc_null; create server records foreign data wrapper cdc_null options (write_format 'false')");
for my $round ($bench->rounds)
{
	$postgres->psql(join('', map { "select pg_create_logical_replication_slot('$slot{$_}', '$reader{$_}[0]');" } sort keys %reader));
	for my $name (sort keys %pipeline)
	{
		my ($sink, $format) = @{ $pipeline{$name} };
		$postgres->psql("select cdc_start_pipeline('$name', sink => '$sink', tables => '{bench.*}', options => '{\"format\": \"$format\", \"snapshot\": \"never\"}')");
		wait_until("select state = 'streaming' from pg_stat_cdc_export where pipeline = '$name'", 0.05);
		$postgres->psql("select cdc_stop_pipeline('$name')");
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
	if ($round == 1)
	{
		my %told = map { ($_ => $postgres->psql("select count(*) from pg_logical_slot_peek_changes('$slot{$_}', null, null" . join('', map { /^(.*?)=(.*)/; ", '$1', '$2'" } @{ $reader{$_} }[ 1 .. $#{ $reader{$_} } ]) . ") where data !~ '^(BEGIN|COMMIT|table cdc_bridge\\.)'")) } 'test_decoding', 'plain JSON', 'Debezium JSON';
		$bench->check_equal('changes', written => $changes, %told);
	}
	$bench->take_turns($round, '', (map { my $name = $_; ($name => sub { return read_all($name, $end, $changes); }) } map { $readers[ 2 * $_ ] } 0 .. $#readers / 2),
		(map { my $name = $_; ($name => sub { return ship_all($name, $end, $changes); }) } map { $pipelines[ 2 * $_ ] } 0 .. $#pipelines / 2),
		(map { my $workers = $_; ("copy by $workers" => sub { return copy_all($workers, $rows); }) } 1, 2));
	$bench->check_equal('shipped', written => $changes, map { ($_ => $postgres->psql("select changes from pg_stat_cdc_export where pipeline = '$_'")) } sort keys %pipeline) if $round == 1;
	$postgres->psql(join('', (map { "select pg_drop_replication_slot('$slot{$_}');" } sort keys %reader), map { "select cdc_drop_pipeline('$_');" } sort keys %pipeline));
	wait_until('select count(*) = 0 from pg_replication_slots', 0.05);
}
$bench->ratio('records in process against pgoutput, binary', 'pipeline, records', 'pgoutput, binary', 4);
$bench->ratio('Debezium JSON in process against pgoutput', 'pipeline, Debezium JSON', 'pgoutput', 2.5);
$bench->ratio('plain JSON in process against pgoutput', 'pipeline, plain JSON', 'pgoutput');
$bench->ratio('plain JSON against pgoutput', 'plain JSON', 'pgoutput');
$bench->ratio('Debezium JSON against pgoutput', 'Debezium JSON', 'pgoutput');
$bench->ratio('plain JSON against test_decoding', 'plain JSON', 'test_decoding');
$bench->ratio('copy by two processes against one', 'copy by 2', 'copy by 1');
$bench->finish;

sub read_all
{
	my ($name, $end, $changes) = @_;
	my (undef, @options) = @{ $reader{$name} };
	my (undef, $seconds) = run_shell(join(' ', $postgres->bindir . '/pg_recvlogical', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres', "--slot=$slot{$name}",
		'--start', '--no-loop', "--endpos=$end", '-F', '0', '-s', '0', '-f', '-', (map { "-o $_" } @options), '> /dev/null'));
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

# From the call that starts the pipeline until all is in its sink: the start of the worker is part of it, as that of pg_recvlogical is there.
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

# From the call that makes the pipeline, its slot included, until all rows are in its sink.
sub copy_all
{
	my ($workers, $copied) = @_;
	my $start = time();
	$session->ask("select cdc_start_pipeline('copy', sink => 'documents', tables => '{bench.*}', options => '{\"snapshot_workers\": $workers}')");
	wait_until("select state = 'streaming' from pg_stat_cdc_export where pipeline = 'copy'", 0.003);
	my $seconds = time() - $start;
	$postgres->psql("select cdc_drop_pipeline('copy')");
	return ($copied, $seconds);
}

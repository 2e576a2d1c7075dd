#!/usr/bin/perl
# export: how long pg_recvlogical takes to read a log of inserts and updates to its end, into /dev/null: with our output plugin in both
# formats, and with those of PostgreSQL. Every reader has a slot of its own over the same log.
use strict;
use warnings;

use Bench qw(run_shell);

my $bench = Bench->new('export');
$bench->start_postgres;
my $postgres = $bench->postgres->allow_output_plugin;
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
my %slot = map { my $slot = lc($_) =~ s/\W+/_/gr; ($_ => $slot) } keys %reader;

$postgres->psql('create table bench.item (id bigint primary key, a int not null, b bigint, price numeric(12,2) not null, name varchar(40) not null, note text, made timestamptz not null, ratio float8 not null, flag smallint not null); '
	  . 'create publication everything for all tables');
for my $round ($bench->rounds)
{
	$postgres->psql(join('', map { "select pg_create_logical_replication_slot('$slot{$_}', '$reader{$_}[0]');" } sort keys %reader));
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
		my %told = map { ($_ => $postgres->psql("select count(*) from pg_logical_slot_peek_changes('$slot{$_}', null, null" . join('', map { /^(.*?)=(.*)/; ", '$1', '$2'" } @{ $reader{$_} }[ 1 .. $#{ $reader{$_} } ]) . ") where data !~ '^(BEGIN|COMMIT)'")) } 'test_decoding', 'plain JSON', 'Debezium JSON';
		$bench->check_equal('changes', written => $changes, %told);
	}
	$bench->take_turns($round, '', map { my $name = $_; ($name => sub { return read_all($name, $end, $changes); }) } map { $readers[ 2 * $_ ] } 0 .. $#readers / 2);
	$postgres->psql(join('', map { "select pg_drop_replication_slot('$slot{$_}');" } sort keys %reader));
}
$bench->ratio('plain JSON against pgoutput', 'plain JSON', 'pgoutput');
$bench->ratio('Debezium JSON against pgoutput', 'Debezium JSON', 'pgoutput');
$bench->ratio('plain JSON against test_decoding', 'plain JSON', 'test_decoding');
$bench->finish;

sub read_all
{
	my ($name, $end, $changes) = @_;
	my (undef, @options) = @{ $reader{$name} };
	my (undef, $seconds) = run_shell(join(' ', $postgres->bindir . '/pg_recvlogical', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres', "--slot=$slot{$name}",
		'--start', '--no-loop', "--endpos=$end", '-F', '0', '-s', '0', '-f', '-', (map { "-o $_" } @options), '> /dev/null'));
	return ($changes, $seconds);
}

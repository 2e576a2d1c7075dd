#!/usr/bin/perl
# decode: the binary log of one server, read to its end by a loop that only reads packets, and by the extension's reader, rows
# and values. The log holds the table's rows as inserts, one update of each, and a mixed load.
use strict;
use warnings;

use Bench qw(run_shell);

my $bench = Bench->new('decode');
$bench->start_servers;
$bench->{unit} = 'bytes';
my $source = $bench->source;
$bench->create_table('item', $bench->rows);
$bench->write_load($bench->make_load('update', $bench->rows));
$bench->write_load($bench->make_load('mixed', $bench->rows));

# all in one file: the dump goes on into a next one, but the first is not the server's first necessarily
my @files = map { $_->[0] } $source->query_rows('show binary logs');
my %sum;
for my $round ($bench->rounds)
{
	$bench->take_turns($round, '', map { my $mode = $_; ($mode => sub { return decode($mode); }) } qw(raw decode ring));
}
$bench->ratio('decode in the reading thread', 'decode', 'raw', 0.5);
$bench->ratio('decode behind the ring', 'ring', 'raw', 0.5);
$bench->ratio('the same by CPU time', 'ring, CPU', 'raw, CPU');
$bench->check_equal('values decoded', one => $sum{decode}, ring => $sum{ring});
$bench->finish;

sub decode
{
	my ($mode) = @_;
	my ($output) = run_shell(join(' ', $bench->program('decode'), $mode, "$source->{dir}/s.sock", 'root', $files[0]));
	my ($seconds, $cpu, $packets, $bytes, $rows, $sum) = split(' ', $output);
	$sum{$mode} = "$rows:$sum";
	$bench->record("$mode, CPU", $bytes, $cpu);
	$bench->value('size of the log', $bytes / 1e6, 'MB') if $mode eq 'raw' && !$bench->{told}++;
	return ($bytes, $seconds);
}

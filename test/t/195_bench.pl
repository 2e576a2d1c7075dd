# cells: mariadb-15
# The tool that measures (make bench) works: with tiny tables each bench gives all its lines, and what it measured is equal on all
# sides. No time is asserted.
# takes: 40 s

use strict;
use warnings;

use CdcBridge::Env qw(new_folder slurp tree);
use JSON::PP ();
use Test::More;

my $folder = new_folder('bench');
my @benches = qw(decode snapshot stream memory latency hot export kafka);
my $tools = tree() . '/build/bench/tools';
my $output;
{
	local %ENV = (%ENV, BENCH_ROWS => 2000, BENCH_ROUNDS => 1, BENCH_BIG_ROWS => 5000, BENCH_SECONDS => 1, BENCH_RATES => '200 5000', BENCH_TIMEOUT => 180,
		SOURCE => $ENV{CDC_SOURCE} // 'mariadb', BENCH_INSTALLED => 1, BENCH_OUT => "$folder/out", BENCH_TOOLS => $tools, BENCH_JSON => "$folder/result.json");
	delete @ENV{qw(BENCH_TX_ROWS BENCH_LATENCY_TX BENCH_OPTIONS MAKEFLAGS)};
	my $program = tree() . '/test/bench/run';
	$output = qx('$program' 2>&1);
}
is($?, 0, 'test/bench/run ends well') or diag($output);
@benches = grep { $_ ne 'kafka' } @benches if $output =~ /Kafka could not be had/;
my $report = eval { JSON::PP->new->decode(slurp("$folder/result.json")) } // {};
is_deeply([ sort keys %{ $report->{benches} } ], [ sort @benches ], 'the JSON has all benches');
ok($report->{machine}{cores}, 'and tells about the machine');

my %lines = (
	decode => [ 'raw', 'decode', 'ring', 'decode in the reading thread', 'decode behind the ring' ],
	snapshot => [ qw(pipeline pipe file), 'snapshot against mariadb | psql copy' ],
	stream => [
		'insert: COPY', (map { my $kind = $_; map { "$kind: $_" } 'pipeline', 'direct', 'replica, default', 'replica, relaxed' } qw(insert update delete mixed)),
		'inserts against COPY', 'updates against the direct loop', 'deletes against the direct loop', '60/30/10 against a relaxed replica', '60/30/10 against a default replica' ],
	memory => [ 'one transaction, committed to visible', 'peak of a worker without shared buffers' ],
	latency => [ '200 rows/s: p50', '5000 rows/s: p50', '5000 rows/s: p99', '5000 rows/s: max' ],
	hot => [ 'hot: plain', 'hot: old snapshot', 'hot keys under an old snapshot' ],
	kafka => [ 'pgoutput', 'Kafka, plain JSON', 'Kafka, Debezium JSON', 'Debezium JSON in Kafka against pgoutput into nothing', 'plain JSON in Kafka against pgoutput into nothing' ],
	export => [ 'pgoutput', 'pgoutput, binary', 'test_decoding', 'plain JSON', 'Debezium JSON', 'nothing shipped', 'pipeline, records', 'pipeline, plain JSON', 'pipeline, Debezium JSON',
		'records in process against pgoutput, binary', 'Debezium JSON in process against pgoutput', 'plain JSON in process against pgoutput', 'plain JSON against pgoutput', 'Debezium JSON against pgoutput' ],
);
my %checks = (decode => 1, snapshot => 1, stream => 4, memory => 2, latency => 2, hot => 1, export => 2, kafka => 1);
for my $name (@benches)
{
	my $bench = $report->{benches}{$name} // {};
	my %told = map { $_->{name} => $_ } map { @{ $bench->{$_} // [] } } qw(series ratios values);
	# S16: that a copy is fast is measured there, and asserted nowhere
	is_deeply([ grep { !$told{$_} } @{ $lines{$name} } ], [], ($name eq 'snapshot' ? 'S16: ' : '') . "$name has all its lines");
	is_deeply([ map { "$_->{name} min $_->{min} median $_->{median} max $_->{max}" } grep { !($_->{min} > 0 && $_->{min} <= $_->{median} && $_->{median} <= $_->{max}) } @{ $bench->{series} // [] } ],
		[], "$name: times are in order");
	my @ok = grep { $_->{ok} } @{ $bench->{checks} // [] };
	is(scalar(@ok), $checks{$name}, "$name: what was measured is equal on all sides") or diag(explain($bench->{checks}));
	like($output, qr/^\Q$name\E: \S+, PostgreSQL/m, "$name is in the table");
}

# packages that `make bench` fetches and a test does not
my $snapshot = $report->{benches}{snapshot} // {};
for my $other (qw(pgloader mysql_fdw))
{
	SKIP:
	{
		my ($skipped) = grep { $_->{name} eq $other } @{ $snapshot->{skipped} // [] };
		skip("$other: $skipped->{why} (test/bench/get-tools fetches it)", 1) if $skipped;
		ok((grep { $_->{name} eq "snapshot against $other" } @{ $snapshot->{ratios} // [] }), "snapshot is compared with $other");
	}
}

done_testing();

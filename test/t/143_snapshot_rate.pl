# max_rows_per_second holds over all workers of a pipeline: the copy cannot be faster than the bucket lets rows out, however fast
# the machine is. (How slow a machine may be does not matter here.)
# cells: mariadb-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my ($rows, $rate, $chunk) = (900, 300, 50);
my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', map { my $table = $_; ("create table shop.$table (id int primary key)", map { my $from = $_ * 100; "insert into shop.$table values " . join(', ', map { "($_)" } $from .. $from + 99) } 0 .. $rows / 300 - 1) } qw(a b c));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	options => qq({"snapshot_chunk_rows": $chunk, "snapshot_workers": 3, "max_rows_per_second": $rate}))->setup;
$pipeline->start->wait_for_tables;
$pipeline->is_same('the copy is whole');
my $took = $postgres->psql('select extract(epoch from max(finished_at) - min(started_at)) from pg_stat_cdc_snapshot');
cmp_ok($took, '>=', ($rows - $chunk) / $rate, "$rows rows at $rate a second by three workers");

# a worker that waits for its turn leaves when it is told to
$pipeline->stop->drop->drop_target;
$pipeline->{options} = '{"max_rows_per_second": 1, "snapshot_workers": 2}';
$pipeline->start;
ok($postgres->poll(q{select count(*) > 0 from cdc_bridge.snapshot_chunk where state = 'done'}, 't'), 'the copy has begun');
$pipeline->stop;
pass('it stops in the middle');

done_testing();

# Several workers copy tables, and parts of one table, at the same time, while 8 processes write; workers are ended and killed
# in between. What is done is not copied again, the others take over what a dead one left, and the copy equals the source.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_hot change_shop create_hot create_shop fill_shop);
use CdcBridge::Source;
use List::Util qw(sum0);
use Test::More;

my $rows = 3000;
my $seed = $ENV{CDC_SEED} // time();
note("seed $seed");
srand($seed);
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
$source->{seed} = $seed;
my $postgres = CdcBridge::Postgres->new;
$postgres->append_conf('max_worker_processes = 20', 'max_replication_slots = 20');
$postgres->append_conf('max_active_replication_origins = 20') if $postgres->major >= 18;
$postgres->restart;
create_shop($source);
fill_shop($source, $rows);
create_hot($source, 40);

# slow enough that all of this happens while tables are being copied
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	options => '{"snapshot_chunk_rows": 25, "snapshot_workers": 4, "max_rows_per_second": 1500}')->setup;

my $done = q{select table_id, sum(chunks) from cdc_bridge.snapshot_chunk where state = 'done' group by table_id};
sub workers { return split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type = 'cdc_bridge snapshot worker'})); }

# The plan of each table is all of its keys, none twice: one chunk begins where another one ends, but for the first.
my $gaps = q{select count(*) from (select table_id, count(*) filter (where lower_key is null) n_first,
	count(*) filter (where not exists (select 1 from cdc_bridge.snapshot_chunk b where b.table_id = a.table_id and b.lower_key = a.upper_key)) n_last,
	bool_and(lower_key is null or exists (select 1 from cdc_bridge.snapshot_chunk b where b.table_id = a.table_id and b.upper_key = a.lower_key)) joined,
	count(*) - count(distinct coalesce(lower_key, '{}')) twice from cdc_bridge.snapshot_chunk a group by table_id) x
	where n_first <> 1 or n_last <> 1 or not joined or twice <> 0};

$source->start_writers(8, sub { my ($dbh, $number) = @_; $number % 2 ? change_hot($dbh, 40) : change_shop($dbh, $rows); });
$pipeline->start;
ok($postgres->poll('select count(*) > 0 from (select table_id from cdc_bridge.snapshot_chunk group by table_id having count(distinct worker) filter (where worker > 0) > 1) x', 't', 120),
	'a table is copied by more than one worker');
is($pipeline->status('snapshot_workers'), 4, 'the view counts the workers');
is($postgres->psql($gaps), 0, 'the plan has neither gaps nor overlaps');

for my $round (1 .. 4)
{
	my %before = map { split(/\|/, $_) } split(/\n/, $postgres->psql($done));
	my @workers = workers();
	my $victim = $workers[ rand @workers ] or last;
	$postgres->psql("select pg_terminate_backend($victim)");
	my $count = sum0(values %before);
	$postgres->poll(qq{select sum(chunks) > $count + 20 from cdc_bridge.snapshot_chunk where state = 'done'}, 't', 120);
	# a table that is complete by now has no plan any more
	my %after = map { split(/\|/, $_) } split(/\n/, $postgres->psql($done));
	my @lost = grep { $after{$_} && $after{$_} < $before{$_} } sort keys %before;
	is("@lost", '', "worker ended, round $round: chunks that were done stay done");
	is($postgres->psql($gaps), 0, "worker ended, round $round: the plan has neither gaps nor overlaps");
}

my @workers = workers();
ok(scalar @workers, 'workers still copy') and $postgres->kill9_process($workers[ rand @workers ]);
$pipeline->wait_for_tables;
$source->stop_writers;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_mirrored('the copy equals the source');
is($postgres->psql('select (select count(*) from cdc_bridge.snapshot_deleted), (select count(*) from cdc_bridge.snapshot_chunk)'), '0|0', 'nothing of the copy is left');
ok($postgres->poll(q{select count(*) from pg_stat_activity where backend_type = 'cdc_bridge snapshot worker'}, 0), 'the workers have left');
is($postgres->psql('select count(*) from pg_locks where locktype = \'advisory\' and objsubid in (52675, 52676)'), 0, 'no lock of theirs is left');
is($pipeline->status('last_error'), '', 'no error');

# one table that cannot be copied stops once, whoever meets the row; the others go on
$pipeline->stop->drop->drop_target;
$source->sql(q{create table shop.odd (id int primary key, v varchar(20)) default charset utf8mb4},
	map { my $from = $_ * 100; 'insert into shop.odd values ' . join(', ', map { "($_, " . ($_ % 50 == 7 ? q{concat('a', char(0))} : q{'x'}) . ')' } $from .. $from + 99) } 0 .. 9);
my $before = () = $postgres->log_text =~ /source table "shop.odd" of pipeline "shop_in" is stopped/g;
$pipeline->{options} = '{"snapshot_chunk_rows": 20, "snapshot_workers": 4}';
$pipeline->start->wait_for_tables->wait_for_catchup;
is($pipeline->table_status('odd', 'state'), 'stopped', 'the table with a NUL byte is stopped');
is($pipeline->table_status('odd', 'last_error_sqlstate'), '22021', 'with its own error');
my $after = () = $postgres->log_text =~ /source table "shop.odd" of pipeline "shop_in" is stopped/g;
is($after - $before, 1, 'that is said once');
$pipeline->is_same('the other tables are whole', grep { $_ ne 'odd' } map { $_->[0] } $source->query_rows(q{select table_name from information_schema.tables where table_schema = 'shop'}));
is($postgres->psql('select count(*) from cdc_bridge.snapshot_chunk'), 0, 'its plan is gone');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

# rows larger than a page of 16 MB, and chunks that turn out larger than planned: cut, and all there
$pipeline->stop->drop->drop_target;
$source->sql('drop table shop.odd', 'set global max_allowed_packet = 268435456', 'create table shop.large (id int primary key, v longblob)');
{
	my $dbh = $source->connect;
	$dbh->do('insert into shop.large values (?, repeat(?, ?))', undef, $_, chr(65 + $_ % 26), $_ % 10 == 5 ? 20_000_000 : $_ % 3 == 0 ? 2_000_000 : 10) for 1 .. 40;
	$dbh->do('analyze table shop.large');
}
$pipeline->{options} = '{"snapshot_workers": 2}';
$pipeline->start->wait_for_tables;
is($pipeline->table_status('large', 'rows_copied'), 40, 'rows of up to 20 MB are copied');
is($postgres->psql(q{select string_agg(id || ':' || length(v) || ':' || encode(sha256(v), 'hex'), ',' order by id) from shop.large}),
	join(',', map { join(':', @$_) } $source->query_rows('select id, length(v), sha2(v, 256) from shop.large order by id')), 'and equal');
cmp_ok($postgres->psql(q{select chunks from pg_stat_cdc_snapshot where source_table = 'large'}), '>', 4, 'in several pieces');

done_testing();

# A source that replicates to another one dies with kill -9, the other is promoted, and pipelines go on there by GTIDs: what was
# applied is not applied again, what was not comes, whatever was being copied is copied anew. Then back again.
# cells: mariadb-15 mysql-18
# takes: 30 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pair;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $pair = CdcBridge::Pair->new;
my ($a, $b) = ($pair->first, $pair->second);
$a->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'create table shop.log (who int, what int) engine=innodb',
	'create table shop.other (id int primary key, v int)', 'create table shop.idle (id int primary key)', 'insert into shop.idle values (1), (2)');
$a->sql('insert into shop.t values ' . join(',', map { "($_, 0)" } 1 .. 100));
$a->sql("grant lock tables on shop.* to 'repl'\@'%'");

# writers that change, insert and delete; rows of a table without a key would be doubled by a change that comes twice
my $write = sub {
	my ($dbh, $number) = @_;
	my $id = 1 + int(rand(100));
	$dbh->do("update shop.t set v = v + 1 where id = $id");
	$dbh->do("insert into shop.log values ($number, $id)");
	$dbh->do("delete from shop.other where id = $id");
	$dbh->do("insert into shop.other values ($id, $number) on duplicate key update v = v + 1");
};

my $pipeline = $pair->pipeline(postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('copied from the first host');
is($postgres->psql('select identity from cdc_bridge.position'), CdcBridge::Pair::identity($a), 'which is the one that is followed');

# a table that joined has a place in the log of the first server
$a->sql('create table shop.joined (id int primary key, v int)', 'insert into shop.joined values (1, 1), (2, 2)', ('flush binary logs') x 5,
	'insert into shop.joined values (3, 3)');
$pipeline->wait_for_catchup;
$pipeline->wait_for_table_state('joined', 'streaming');
is($postgres->psql("select join_file is not null from cdc_bridge.table_state join cdc_bridge.pipeline_table using (pipeline_id, table_id) where source_table = 'joined'"), 't',
	'a table that joined has a place in the log');
# a crash would take back that it joined, as commits are asynchronous, and it would join again at the other server
$postgres->psql('checkpoint');

# ---- 1. the followed server dies under writers, with kills of ours in between

$a->start_writers(3, $write);
ok(poll_until(sub { $pipeline->table_status('log', 'inserts') > 50 }), 'the stream is at work');
$postgres->kill9_process($pipeline->status('ingest_pid'));
$postgres->start unless $postgres->accepts_connections;
poll_until(sub { $postgres->accepts_connections }) or die "PostgreSQL did not come back\n";
$pair->fail_over;
$a->stop_writers;
$b->start_writers(3, $write);
$pair->wait_for_server($pipeline, $b);
$postgres->kill9;
$postgres->start;
# the crash may have taken back the move, and a place in the former log is no place in this one
$pair->wait_for_server($pipeline, $b);
$b->sql('update shop.joined set v = 30 where id = 3', 'insert into shop.joined values (4, 4)');
select(undef, undef, undef, 0.01) until $b->query_value('select count(*) from shop.log') > 100;
$b->stop_writers;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_mirrored('B15: after a failover under writers nothing is lost and nothing doubled');
like($postgres->log_text, qr/pipeline "shop_in" goes on at server "\Q${\ CdcBridge::Pair::identity($b)}\E", host "127.0.0.1", port ${\ $b->port}/,
	'the log tells where it goes on');
is($pipeline->status('applied_gtids') =~ s/\s//gr, $b->gtids, 'B11: the set of GTIDs is that of the new server') if $b->is_mysql;
is($postgres->psql("select count(*) from cdc_bridge.table_state where join_file is not null"), '0', 'places in the former log are forgotten');

# ---- 2. and back: the former first one is a replica now, and takes over in the middle of a copy

$a->start;
$a->replicate_from($b);
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 300, "snapshot_chunk_rows": 50}')});
$pipeline->wait_for_state('streaming');
$b->sql('create table shop.big (id int primary key, v varchar(100))',
	q{insert into shop.big select a.id + 100 * (b.id - 1), repeat('abcdefghij', 5) from shop.t a, shop.t b where b.id <= 20});
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.t')});
ok(poll_until(sub { my $n = $postgres->psql("select coalesce(sum(chunks), 0) from cdc_bridge.snapshot_chunk where state = 'done'"); $n >= 2; }), 'a copy is under way');
$b->start_writers(2, $write);
$b->sql('update shop.big set v = concat(v, 1) where id % 3 = 0', 'delete from shop.big where id % 7 = 0');
$pair->fail_over;
$b->stop_writers;
$a->sql('update shop.big set v = concat(v, 2) where id % 5 = 0', 'delete from shop.big where id % 11 = 0', 'insert into shop.big values (5000, 5)');
$pair->wait_for_server($pipeline, $a);
like($postgres->log_text, qr/goes on at server.*\n.*DETAIL: .* [12] of its tables are copied anew/, 'copies that were under way begin anew');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
$a->sql('insert into shop.big values (5001, 5)');
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_mirrored('S9: a copy that the failover met is complete and right');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'no table is stopped');
is($postgres->psql(q{select count(*) from pg_class where relname like 'cdc_resync_%'}), '0', 'no shadow is left');
$pipeline->is_verified('cdc_verify says so too', qw(t other idle joined big));

# ---- 3. a stopped pipeline finds the other server when it is started

$pipeline->stop;
$a->sql('insert into shop.log values (7, 7)');
$b->start;
$b->replicate_from($a);
$pair->fail_over;
$b->sql('insert into shop.log values (8, 8)');
$pipeline->start;
$pair->wait_for_server($pipeline, $b);
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('a pipeline that was stopped meanwhile goes on too');

# ---- 4. a chunk has seen a transaction that the stream has not come to, and that the new server never got

$pipeline->drop;
$pair = CdcBridge::Pair->new;
($a, $b) = ($pair->first, $pair->second);
$a->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values ' . join(',', map { "($_, 0)" } 1 .. 600));
$postgres->psql('drop extension cdc_bridge cascade');
$pipeline = $pair->pipeline(postgres => $postgres, options => '{"max_rows_per_second": 300, "snapshot_chunk_rows": 50}');
$pipeline->drop_target->setup->start;
ok(poll_until(sub { my ($status, $n) = $postgres->try_psql('select count(*) from shop.t'); return $status == 0 && $n >= 50; }), 'a copy is under way');
my $ingest = $pipeline->status('ingest_pid');
kill('STOP', $ingest);
$b->wait_for_replica($a);
$b->sql($b->is_mysql ? ('stop replica', 'reset replica all') : ('stop slave', 'reset slave all'));
# what it were sent by now it would read when it goes on
my @dumps;
my $ask = q{select id from information_schema.processlist where command like 'Binlog Dump%'};
ok(poll_until(sub { @dumps = $a->query_rows($ask); eval { $a->sql("kill $_->[0]") } for @dumps; return !@dumps; }), 'the former server sends nothing any more');
$a->sql('update shop.t set v = 13 where id > 550', 'insert into shop.t values (1000, 13)');
ok($postgres->poll('select count(*) > 0 from shop.t where v = 13', 't'), 'the copy has what the stream has not');
$a->kill9;
kill('CONT', $ingest);
$b->sql('insert into shop.t values (2000, 1)');
$pair->wait_for_server($pipeline, $b);
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('what only the former server ever had is gone again');

done_testing();

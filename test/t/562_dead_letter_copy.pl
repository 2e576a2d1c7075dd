# Rows of the initial copy that do not fit become dead letters, the rest of their chunk is written; over crashes none is lost or
# kept twice. What the stream says of such a row counts more.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $rows = 6000;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 },
	options => '{"on_error": "dead_letter", "snapshot_chunk_rows": 1500, "max_rows_per_second": 6000}')->setup;    # slow enough to be met by kills
$source->sql('create database shop', q{set sql_mode = ''}, 'create table shop.n (n int)', 'insert into shop.n values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)');
sub fill { my ($table, $value, $count) = @_; $source->sql("insert into shop.$table select x, $value from (select a.n + 10 * b.n + 100 * c.n + 1000 * d.n x from shop.n a, shop.n b, shop.n c, shop.n d) s where x < $count"); return; }
$source->sql('create table shop.some (id int primary key, v int)', 'create table shop.every (id int primary key, v int)', 'create table shop.zero (id int primary key, d datetime not null)',
	'create table shop.pairs (id int primary key, v int)', 'create table shop.fine (id int primary key, v int)', 'create table shop.bytes (id int primary key, t text)');
fill('some', 'case when x % 500 = 7 then 1000 else 1 end', $rows);
fill('every', '1000', 2000);
fill('pairs', 'x div 2', 100);
fill('fine', 'x', $rows);
$source->sql(q{insert into shop.zero values (1, '2026-01-01'), (2, '0000-00-00'), (3, '2026-01-03')}, 'drop table shop.n');
$source->sql(q{insert into shop.bytes values (1, 'one'), (2, concat('a', char(0), 'b')), (3, 'three')});
$postgres->psql(join(";\n", 'create schema shop', 'create table shop.some (id int primary key, v int check (v < 100))', 'create table shop.every (id int primary key, v int check (v < 100))',
	'create table shop.pairs (id int primary key, v int unique)'));
$pipeline->start;
# killed on the way, more than once
for (1 .. 3)
{
	$postgres->poll(q{select count(*) > 0 from cdc_dead_letters}, 't');
	$postgres->psql(q{select pg_terminate_backend(pid) from pg_stat_activity where backend_type like 'cdc_bridge snapshot%'});
}
my $pid = $postgres->psql(q{select coalesce(min(pid), 0) from pg_stat_activity where backend_type like 'cdc_bridge snapshot%'});
$postgres->kill9_process($pid) if $pid;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

sub letters { my ($table) = @_; return $postgres->psql(qq{select count(*), count(distinct after->>'id'), string_agg(distinct operation || ' ' || state, ', ') from cdc_dead_letters where source_table = '$table'}); }
is($pipeline->status('tables_stopped'), '0', 'no table is stopped') or diag($pipeline->describe);
is(letters('some'), '12|12|snapshot waiting', 'each bad row once');
is($postgres->psql('select count(*), count(*) filter (where id % 500 = 7) from shop.some'), '5988|0', 'and all the others are there');
is(letters('every'), '2000|2000|snapshot waiting', 'a table of nothing but bad rows');
is($postgres->psql('select count(*) from shop.every'), '0', 'is empty, and streams');
is(letters('zero'), '1|1|snapshot waiting', 'M6: a zero date, policy error, in a NOT NULL column');
is($postgres->psql(q{select after, error_sqlstate, file is null, action is null, changed_at is null from cdc_dead_letters where source_table = 'zero'}), '{"d": "0000-00-00 00:00:00", "id": "2"}|22008|t|t|t', 'is told as it was');
is(letters('bytes'), '1|1|snapshot waiting', 'M33: a NUL in text');
is(letters('pairs'), '50|50|snapshot waiting', 'rows that fit one by one and not together: one of each pair');
is($postgres->psql('select count(*), count(distinct v) from shop.pairs'), '50|50', 'the other one is there');
$pipeline->is_same('a table without bad rows', 'fine');

# ---- the stream makes letters of the copy moot: some rows by a change that fits, some are gone
$source->sql('update shop.some set v = 5 where id = 7', 'delete from shop.some where id = 507', 'insert into shop.zero values (4, now())');
$pipeline->wait_for_catchup;
is($postgres->psql(q{select string_agg(after->>'id', ',' order by after->>'id') from cdc_dead_letters where source_table = 'some' and state = 'superseded'}), '507,7', 'later changes supersede them');

# ---- replayed when the cause is mended
$postgres->psql(join(";\n", 'alter table shop.some drop constraint some_v_check', 'alter table shop.every drop constraint every_v_check', 'alter table shop.pairs drop constraint pairs_v_key'));
$postgres->psql('insert into shop.some values (1007, 77)');    # somebody mended one by hand
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"on_error": "dead_letter", "zero_date": "epoch", "nul_bytes": "strip"}')});
my $number = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $number", 't') or die "no end\n" . $pipeline->describe;
is($postgres->psql("select state, settled, failed, left_alone from cdc_dead_letter_requests where request = $number"), 'done|2062|0|0', 'all are settled')
  or diag($postgres->psql(q{select source_table, error, error_detail, after from cdc_dead_letters where state = 'failed' limit 5}));
is($postgres->psql(q{select state, reason from cdc_dead_letters where after->>'id' = '1007' and source_table = 'some'}), 'superseded|the stream, or somebody else, has written a row with its key', 'a row that is there is left alone');
$postgres->psql('update shop.some set v = 1000 where id = 1007');
$pipeline->is_same('the copies are whole', qw(some every pairs fine));
is($postgres->psql(q{select d = '1970-01-01' from shop.zero where id = 2}), 't', 'with the policy that the pipeline has now');
is($postgres->psql(q{select t from shop.bytes where id = 2}), 'ab', 'for NULs too');

# ---- what is wrong with a target as a whole is no row's fault
$postgres->psql('create table shop.odd (id int primary key)');
$source->sql('create table shop.odd (id int primary key, v int)', 'insert into shop.odd values (1, 1)');    # it joins by itself
$pipeline->wait_for_table_state('odd', 'stopped');
is(letters('odd'), '0|0|', 'a target without the column stops its table');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

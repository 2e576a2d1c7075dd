# S9: kill -9 in each phase of a copy: the source is being looked at, a chunk is read and not written, a chunk is being written, the stream
# has to catch up, the copy is to be handed over or to take its place, an index is being built, a table without a key is being copied. Each
# phase is arranged and held while a process of ours is killed; then the copy goes on by itself, and source and target are equal.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $rows = 240;
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.a (id int primary key, v int, w int, key (v))', 'create table shop.gate (id int primary key, v int)',
	'create table shop.bare (v int, w int)', 'insert into shop.gate values (1, 0)');
$source->sql("grant lock tables on shop.* to 'repl'\@'%'") if $source->is_mysql;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
my $round = 0;

# Begin a copy anew, at its first row.
sub begin
{
	my ($tables, $options) = @_;
	$pipeline->stop->drop->drop_target if $pipeline->{created};
	@$pipeline{qw(tables options)} = ($tables, $options);
	return $pipeline->start;
}
sub fill
{
	return $source->sql('delete from shop.a', 'insert into shop.a values ' . join(', ', map { "($_, 0, $_)" } 1 .. $rows),
		'delete from shop.bare', 'insert into shop.bare values ' . join(', ', map { "($_, 1), ($_, 1)" } 1 .. $rows / 2));
}

# Changes that a copy must neither lose nor undo, all over the table.
sub change
{
	$round++;
	$source->sql('delete from shop.a where id % 40 = 3', "update shop.a set v = $round where id % 40 = 5", "update shop.a set id = id + 10000 where id % 40 = 7",
		"insert into shop.a values (20000 + $round, 1, 1), (-$round, 1, 1)", 'delete from shop.bare where v % 40 = 3 limit 3', "update shop.bare set w = $round where v % 40 = 5 limit 3",
		"insert into shop.bare values (3, 1), (900, $round)");
	return;
}

# A session of ours that holds something until it is let go; a crash of the server ends it too.
my $holder;
sub hold
{
	my ($statement) = @_;
	open($holder, '|-', "exec $postgres->{bindir}/psql -qXAt -h $postgres->{dir} -p $postgres->{port} -U postgres postgres >/dev/null 2>&1") or die "psql: $!";
	$holder->autoflush(1);
	print $holder "begin; $statement; select pg_advisory_xact_lock(290);\n";
	$postgres->poll(q{select count(*) from pg_locks where locktype = 'advisory' and objid = 290 and granted}, '1', 30) or die 'it does not hold';
	return;
}
sub let_go { local $SIG{PIPE} = 'IGNORE'; print $holder "commit;\n"; close($holder); return; }

sub worker { my ($kind) = @_; return $postgres->psql("select coalesce(min(pid)::text, '') from pg_stat_activity where backend_type = 'cdc_bridge $kind worker'"); }
sub kill_worker { my ($kind, $name) = @_; my $pid = worker($kind); ok($pid, "$name: a worker is there") or return; $postgres->kill9_process($pid); return; }
sub waits_for { my ($relation, $name) = @_; ok($postgres->poll("select count(*) > 0 from pg_locks where relation = to_regclass('$relation') and not granted", 't', 30), "$name: held") or diag($pipeline->describe); return; }
sub bare_of { my ($rows) = @_; return join(' ', sort { $a cmp $b } @$rows); }

sub is_whole
{
	my ($name, @tables) = @_;
	note('at ' . (time() - $^T) . " s: $name");
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	is($postgres->psql(q{select coalesce(string_agg(source_table || ': ' || last_error, ', '), '') from pg_stat_cdc_table where state <> 'streaming'}), '', "$name: no table is stopped");
	my @keyed = grep { $_ ne 'bare' } @tables;
	$pipeline->is_same("S9: $name: source and target are equal", @keyed) if @keyed;
	is(bare_of([ split(/\n/, $postgres->psql(q{select v || ',' || w from shop.bare})) ]), bare_of([ map { "$_->[0],$_->[1]" } $source->query_rows('select v, w from shop.bare') ]),
		"S9: $name: source and target are equal without a key") if grep { $_ eq 'bare' } @tables;
	is($postgres->psql('select (select count(*) from cdc_bridge.snapshot_deleted), (select count(*) from cdc_bridge.snapshot_chunk)'), '0|0', "$name: nothing of the copy is left");
	return;
}

fill();

# 1. before anything is written here
my $name = 'the source is being looked at';
my $locker = $source->connect;
$locker->do('lock tables shop.a write');
begin('{shop.a}');
ok(poll_until(sub { return $source->query_value(q{select count(*) from information_schema.processlist where user = 'repl' and state like '%metadata lock%'}) }, 30), "$name: held");
kill_worker('ingest', $name);
$locker->do('update shop.a set v = 1 where id = 1');
$locker->do('unlock tables');
is_whole($name, 'a');

# 2. read into memory, and waiting for its turn
$name = 'a chunk is read and not written';
fill();
begin('{shop.a}', '{"snapshot_chunk_rows": 30, "max_rows_per_second": 30, "snapshot_workers": 1}');
ok($postgres->poll(q{select count(*) = 1 from pg_stat_cdc_snapshot where chunks between 2 and 4}, 't', 30), "$name: held");
change();
kill_worker('snapshot', $name);
change();
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
is_whole($name, 'a');
cmp_ok($pipeline->table_status('a', 'rows_copied'), '<=', $rows, "S9: $name: what was done is not copied again");

# 3. in the transaction that writes it
$name = 'a chunk is being written';
fill();
begin('{shop.a}', '{"snapshot_chunk_rows": 30, "max_rows_per_second": 60, "snapshot_workers": 2}');
ok($postgres->poll(q{select count(*) = 1 from pg_stat_cdc_snapshot where chunks between 1 and 5}, 't', 30), "$name: begun");
hold('lock table shop.a in share mode');
waits_for('shop.a', $name);
change();
kill_worker('snapshot', $name);
let_go();
is_whole($name, 'a');

# 4. all chunks are there
$name = 'the stream has to catch up';
fill();
begin('{shop.gate}', '{"snapshot_chunk_rows": 30, "max_rows_per_second": 60}');
$pipeline->wait_for_state('streaming')->wait_for_tables;
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.a')});
ok($postgres->poll(q{select count(*) > 0 from pg_stat_cdc_snapshot where source_table = 'a' and chunks > 0}, 't', 30), "$name: begun");
hold('lock table shop.gate in share mode');
$source->sql('update shop.gate set v = v + 1');
waits_for('shop.gate', $name);
change();
$pipeline->wait_for_table_state('a', 'catchup', 60);
change();
kill_worker('ingest', $name);
let_go();
is_whole($name, 'a', 'gate');

# 5. a new copy that waits for its place
$name = 'the copy is to take its place';
hold('select count(*) from shop.a');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.a')});
ok($postgres->poll(q{select state = 'catchup' and last_error is not null from pg_stat_cdc_table where source_table = 'a'}, 't', 60), "$name: held") or diag($pipeline->describe);
change();
$postgres->kill9;
let_go();
$postgres->start;
is_whole($name, 'a', 'gate');

# 6. an index
$name = 'an index is being built';
fill();
begin('{shop.a}', '{"snapshot_chunk_rows": 30, "max_rows_per_second": 120}');
ok($postgres->poll(q{select to_regclass('shop.a') is not null}, 't', 30), "$name: begun");
hold('lock table shop.a in row exclusive mode');
ok($postgres->poll(q{select count(*) > 0 from pg_stat_activity where backend_type = 'cdc_bridge snapshot worker' and wait_event_type = 'Lock' and wait_event = 'virtualxid'}, 't', 60), "$name: held")
  or diag($pipeline->describe);
change();
kill_worker('snapshot', $name);
let_go();
is_whole($name, 'a');
ok($postgres->poll(q{select string_agg(state, ' ') from pg_stat_cdc_index}, 'built', 60), "S9: $name: it is built in the end");
is($postgres->psql(q{select count(*) filter (where indisvalid), count(*) from pg_index where indrelid = 'shop.a'::regclass}), '2|2', "S9: $name: and nothing of the first attempt is left");

# 7. without a key all of it is one transaction
$name = 'a table without a key is being copied';
fill();
begin('{shop.bare}', '{"max_rows_per_second": 60}');
ok($postgres->poll(q{select join_file is not null from cdc_bridge.table_state}, 't', 30), "$name: held");
change();
kill_worker('snapshot', $name);
change();
is_whole($name, 'bare');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

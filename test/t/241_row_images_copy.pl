# B6 and M25 while a table is copied: a change in part of a row that no chunk has brought yet makes the copy read the row again, once
# the source shows that change and not before; differences of documents are applied once. Each moment is made by hand: the copy is
# slowed down, and a commit is held between the source's log and its tables.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::HeldCommit;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use Test::More;

my $source = CdcBridge::HeldCommit->source;
my $postgres = CdcBridge::Postgres->new;
my $mysql = $source->is_mysql;
my $json = $mysql ? 'json' : 'text';
my $pad = 'x' x 200;

# a long table in front, by which the copy of the others is slowed down as long as we like
sub make
{
	$source->sql('drop database if exists shop', 'create database shop', 'use shop',
		"create table t (id int primary key, a int default 1, b int default 2, t text, j $json)", "create table seq (n int primary key)",
		'insert into seq values ' . join(', ', map { "($_)" } 1 .. 300),
		"insert into t select n, n, n, 'old', '{\"pad\": \"$pad\", \"n\": [1]}' from seq", 'drop table seq',
		"create table k (c varchar(10) character set latin1 collate latin1_swedish_ci, n decimal(5,2), bin binary(3), e enum('x', 'y'), d date, ts timestamp(3), f double, v int, w int, primary key (c, n, bin, e, d, ts, f))",
		"insert into k values ('\xc3\xa9\\'', 1.5, 'a', 'y', '2001-02-03', '2001-02-03 04:05:06.5', 1.1, 1, 1), ('b', -2, x'0001', 'x', '2001-02-03', '2001-02-03 04:05:06', 1e100, 2, 2), ('B2', 3, 'abc', 'x', '2001-02-03', '2001-02-03 04:05:06', 0, 3, 3)");
	return;
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup(username => $source->user);

sub unread { return $postgres->psql('select count(*) from cdc_bridge.snapshot_reread where not is_read'); }
sub listed { return $postgres->psql('select count(*) from cdc_bridge.snapshot_reread'); }

my $session;
sub with_image
{
	my ($image, @statements) = @_;
	$session->do("set session binlog_row_image = '$image'");
	$session->do($_) for @statements;
	return;
}

sub begin
{
	my ($rate, $more) = @_;
	$session = $source->connect;
	$session->do('use shop');
	$session->do("set session binlog_row_value_options = 'PARTIAL_JSON'") if $mysql;
	$pipeline->{options} = qq({"snapshot_chunk_rows": 50, "snapshot_workers": 1, "max_rows_per_second": $rate) . ($more // '') . '}';
	$pipeline->start->wait_for_state('snapshot');
	ok($postgres->poll(q{select count(*) > 0 from cdc_bridge.snapshot_chunk where state = 'done'}, 't'), 'the copy is under way');
	return;
}

sub finish
{
	my ($name) = @_;
	# as fast as it goes now; the marks and lists stay
	$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
	$pipeline->wait_for_tables->wait_for_catchup;
	is($pipeline->status('tables_stopped'), '0', "$name: no table stopped") or diag($pipeline->describe);
	is(listed(), '0', "$name: nothing is left on the list");
	$pipeline->is_same($name);
	$pipeline->is_verified("$name, says cdc_verify()");
	return;
}

# ---- 1. changes in part of rows that are not there yet, with everything that may come behind them
make();
begin(20);
with_image('MINIMAL', 'update t set a = 1001 where id = 250', 'update t set b = 1002 where id = 250', 'update t set a = 1003 where id = 251', 'delete from t where id = 251',
	'update t set a = 1004 where id = 252', 'update t set id = 1252 where id = 252', 'update t set b = 1005 where id = 1252', 'update t set id = 2253 where id = 253',
	'update t set id = 254254 where id = 254', 'update t set id = 254 where id = 254254',
	'update t set a = 1006 where id = 255', 'delete from t where id = 255', 'insert into t (id) values (255)', 'update t set b = 9 where id = 255',
	'insert into t (id, b) values (5000, 3)', 'update t set a = 4 where id = 5000', 'delete from t where id = 256', 'insert into t (id) values (256)', 'delete from t where id = 256',
	'start transaction', 'update t set a = 7 where id = 257', 'update t set id = 258258 where id = 258', 'update t set a = 8 where id = 258258', 'delete from t where id = 257', 'commit',
	"update k set v = v + 10");
with_image('NOBLOB', 'update t set a = 1007 where id = 260', "update t set t = 'new' where id = 261", 'update t set id = 1262 where id = 262');
with_image('MINIMAL', 'update t set a = 1008 where id = 263');
with_image('FULL', 'update t set b = 1009 where id = 263');
ok($postgres->poll('select count(*) >= 8 from cdc_bridge.snapshot_reread', 't'), 'rows that are not there are listed') or diag(listed());
is($postgres->psql(q{select count(*) from shop.t where id in (250, 251, 252, 253, 1252, 257, 258258)}), '0', 'and not made up from a part');
# a worker that dies leaves the list as it is
$postgres->kill9_process($pipeline->status('ingest_pid'));
$pipeline->wait_for_state('snapshot');
finish('changes in part of rows that come later');
$pipeline->stop->drop->drop_target;

# ---- a target that had older rows of its own: a part is not mixed with those
make();
$postgres->psql('create schema shop; create table shop.t (id int primary key, a int, b int, t text, j ' . ($mysql ? 'jsonb' : 'text') . "); insert into shop.t values (250, -1, -1, 'older', null), (251, -1, -1, 'older', null)");
begin(20, ', "on_existing": "append"');
with_image('MINIMAL', 'update t set a = 1001 where id = 250', 'update t set id = 1251 where id = 251');
ok($postgres->poll('select count(*) from cdc_bridge.snapshot_reread', 2), 'rows that are older than the copy are read again too');
with_image('MINIMAL', 'update t set b = 1002 where id = 250');
finish('a target that had rows');
$pipeline->stop->drop->drop_target;

# ---- 2. the source has logged the change and does not show it: the row is not read before it does
make();
begin(20);
$source->sql("set global binlog_row_image = 'MINIMAL'");
my $held = CdcBridge::HeldCommit->new($source, 'update shop.t set a = 2001 where id = 280', 'update shop.t set b = 2002 where id = 281', 'update shop.t set id = 2282 where id = 282');
$source->sql("set global binlog_row_image = 'FULL'");
ok($postgres->poll('select count(*) from cdc_bridge.snapshot_reread', 3), 'the stream has the change') or diag($pipeline->describe);
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
ok($postgres->poll(q{select state from pg_stat_cdc_table where source_table = 't'}, 'catchup'), 'all chunks are copied while the commit is held') or diag($pipeline->describe);
is($source->query_value('select a from shop.t where id = 280'), '280', 'which the source does not show');
my $early = poll_until(sub { return unread() ne '3' || $pipeline->table_status('t', 'state') eq 'streaming'; }, 1.5);
ok(!$early, 'a row is not read again before the source shows its change') or diag($pipeline->describe);
$held->release;
finish('a change in part that is logged and not visible');
$pipeline->stop->drop->drop_target;

# ---- 3. differences of documents: never twice, whether the chunk has seen them or not
if ($mysql)
{
	# the chunks are read while the stream stands still: they show what it has yet to bring
	make();
	begin(100);
	my $ingest = $pipeline->status('ingest_pid');
	ok(poll_until(sub { return $postgres->psql("select wait_event from pg_stat_activity where pid = $ingest") ne ''; }), 'the stream waits for changes');
	kill('STOP', $ingest);
	with_image('MINIMAL', map { my $n = $_; map { "update t set j = json_set(j, '\$.n[99999]', $n) where id = $_" } 200, 250, 299 } 1 .. 3);
	ok($postgres->poll(q{select state from pg_stat_cdc_table where source_table = 't'}, 'catchup'), 'all chunks are copied') or diag($pipeline->describe);
	is($postgres->psql(q{select j->'n' from shop.t where id = 250}), '[1, 1, 2, 3]', 'and show the differences');
	kill('CONT', $ingest);
	finish('M25: differences that the chunk has seen are not applied twice');
	$pipeline->stop->drop->drop_target;

	make();
	begin(60);
	my $listed = 0;
	for my $round (1 .. 20)
	{
		for my $id (1, 40, 120, 200, 299)
		{
			with_image($round % 2 ? 'MINIMAL' : 'NOBLOB', "update t set j = json_set(j, '\$.n[99999]', $round, '\$.r$round', $round) where id = $id");
		}
		with_image('MINIMAL', "update t set j = json_remove(j, '\$.n[0]') where id = 121", "update t set j = json_set(j, '\$.n[99999]', $round) where id = 121");
		$listed += listed();
	}
	cmp_ok($listed, '>', 0, 'M25: documents are read again');
	finish('M25: differences of documents while the table is copied');

	# the same while the table is copied anew beside its old rows, with the writer at work to the end
	$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 200}')});
	my $generation = $postgres->psql("select generation from cdc_bridge.table_state join cdc_bridge.pipeline_table using (pipeline_id, table_id) where source_table = 't'");
	$postgres->psql("select cdc_resync_table('shop_in', 'shop.t')");
	my $round = 0;
	ok(poll_until(sub {
		$round++;
		with_image('MINIMAL', map { "update t set j = json_set(j, '\$.n[99999]', $round) where id = $_" } 5, 150, 290);
		return $postgres->psql("select generation > $generation and state = 'streaming' from cdc_bridge.table_state join cdc_bridge.pipeline_table using (pipeline_id, table_id) where source_table = 't'") eq 't';
	}, 60), 'M25: a copy comes to an end although documents change all the time') or diag($pipeline->describe);
	$pipeline->wait_for_catchup;
	$pipeline->is_same('and is right');
}

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

# B6 and M25 under load: writers that choose their row images, and whether documents come as differences, statement by statement, while
# tables are copied, join, are copied anew, and processes are killed. Both sides are equal afterwards.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $mysql = $source->is_mysql;
my @images = ('FULL', 'MINIMAL', 'MINIMAL', 'NOBLOB', $source->has_full_nodup ? ('FULL_NODUP') x 2 : ());
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed");

my ($rows, $hot) = (1000, 40);
my $json = $mysql ? 'json' : 'text';
# MariaDB's images may leave them out
my $generated = "sg int generated always as (a + coalesce(b, 0)) stored, vg varchar(30) generated always as (concat('v', a)) virtual";
my $pad = 'x' x 150;
my $document = $mysql ? "json_object('pad', '$pad', 'n', json_array(1, 2.50), 'o', json_object('x', 1))" : "'$pad'";
$source->sql('create database shop', 'use shop', "set session sql_mode = ''",
	"create table wide (id int primary key, a int default 1, b int default 2, c decimal(6,2) default 3.5, s varchar(20) default 'def', t text, nn int not null, at datetime(3) default null on update current_timestamp(3), j $json, k $json, $generated)",
	'create table keyed (k1 varchar(10) collate utf8mb4_bin, k2 smallint, v int default 7, w text, u int, primary key (k1, k2))',
	'create table keyless (a int, b int default 2, c text)',
	"create table later (id int primary key, a int default 1, b int, j $json, $generated)",
	'create table seq (n int primary key)', 'insert into seq values ' . join(', ', map { "($_)" } 1 .. $rows),
	"insert into wide (id, a, b, t, nn, j, k) select n, n, n, 'text', n, $document, $document from seq",
	"insert into keyed (k1, k2, v, w) select concat('k', n mod 10), n, n, 'text' from seq", 'insert into keyless (a) select n mod 20 from seq where n <= 200',
	"insert into later (id, b, j) select n, n, $document from seq", 'drop table seq');
$source->sql('grant lock tables on *.* to repl');

sub pick { return $_[ rand @_ ]; }

# A statement on one of the tables. Few keys are hot, so that the same rows change again and again; some of them come late in a copy.
sub statement
{
	my $id = rand() < 0.7 ? int($rows - $hot * rand()) : 1 + int(rand($rows));
	my $value = int(rand(100000));
	my $document_change = sub {
		my ($column) = @_;
		return "$column = " . pick("'$value'", 'null', "concat($column, 'x')") unless $mysql;
		return "$column = " . pick("json_set($column, '\$.k" . int(rand(4)) . "', $value)", "json_remove($column, '\$.k" . int(rand(4)) . "')", "json_set($column, '\$.n[99999]', $value.50)",
			"json_remove($column, '\$.n[0]')", "json_set($column, '\$.o.x', '$value', '\$.o.y$value', json_array())", "json_replace($column, '\$.o', json_object('x', $value))",
			"json_set($column, '\$.n[0]', json_object('v', $value), '\$.n[0].w', 1)", "json_set(coalesce($column, $document), '\$.a', 1)", rand() < 0.1 ? 'null' : $document);
	};
	my $table = pick(qw(wide wide wide keyed later));
	return pick("update wide set a = $value where id = $id", "update wide set b = $value, s = 's$value' where id = $id", "update wide set t = concat(t, 'x') where id = $id",
		'update wide set ' . $document_change->('j') . " where id = $id", 'update wide set ' . $document_change->('k') . ", c = c + 1 where id = $id", 'update wide set ' . $document_change->('j') . ', ' . $document_change->('k') . " where id between $id and $id + 3",
		"delete from wide where id = $id", "insert ignore into wide (id) values ($id)", "insert ignore into wide (id, b, j, k) values ($id, $value, $document, $document)", "insert ignore into wide (id, s) values ($id + $value, null)",
		"update ignore wide set id = $id + " . (1 + int(rand(4))) . ", a = $value where id = $id", "update wide set s = default, b = default where id = $id", "update wide set nn = nn + 1 where id between $id and $id + 10") if $table eq 'wide';
	return pick('update later set ' . $document_change->('j') . " where id = $id", "update later set a = a + 1 where id = $id", "insert ignore into later (id, b) values ($id, 3)", "delete from later where id = $id",
		"update ignore later set id = id + 1 where id = $id") if $table eq 'later';
	my $key = "k1 = 'k" . $id % 10 . "' and k2 = $id";
	return pick("update keyed set v = $value where $key", "update keyed set w = concat(w, 'y') where $key", "delete from keyed where $key", "insert ignore into keyed (k1, k2) values ('k" . $id % 10 . "', $id)",
		"update ignore keyed set k1 = 'moved', u = $value where $key", "update ignore keyed set k1 = concat('k', k2 mod 10) where k1 = 'moved' and k2 = $id",
		'update keyless set b = b + 1 where a = ' . $id % 20 . ' limit 1', 'insert into keyless (a) values (' . $id % 20 . ')', 'delete from keyless where a = ' . $id % 20 . ' limit 1');
}

sub change
{
	my ($dbh) = @_;
	if (!$dbh->{private_ready})
	{
		$dbh->do($_) for 'use shop', "set session sql_mode = ''";
		$dbh->{private_ready} = 1;
	}
	$dbh->do('set session binlog_row_image = ' . pick(@images)) if rand() < 0.4;
	$dbh->do('set session binlog_row_value_options = ' . pick("''", "'PARTIAL_JSON'", "'PARTIAL_JSON'")) if $mysql && rand() < 0.3;
	my $count = rand() < 0.5 ? 1 : 1 + int(rand(6));
	$dbh->begin_work;
	$dbh->do(statement()) for 1 .. $count;
	rand() < 0.05 ? $dbh->rollback : $dbh->commit;
	select(undef, undef, undef, 0.003);
	return;
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, tables => '{shop.wide,shop.keyed,shop.keyless}')->setup;

sub settle
{
	my ($name) = @_;
	$source->stop_writers;
	$pipeline->wait_for_tables(90)->wait_for_catchup(90);
	is($pipeline->status('tables_stopped'), '0', "$name: no table stopped") or diag($pipeline->describe);
	my @tables = split(/\n/, $postgres->psql("select source_table from pg_stat_cdc_table order by 1"));
	$pipeline->is_same($name, @tables);
	$pipeline->is_verified("$name, says cdc_verify()", grep { $_ ne 'keyless' } @tables);
	is($postgres->psql('select coalesce(sum(conflicts), 0) from pg_stat_cdc_table'), '0', "$name: no conflicts");
	return;
}

sub write_for_a_while
{
	$source->{seed} = $seed++;
	$source->start_writers(3, \&change);
	return;
}

# ---- the first copy, with kills
write_for_a_while();
$pipeline->{options} = '{"snapshot_chunk_rows": 100, "max_rows_per_second": 700, "batch_max_rows": 50}';
$pipeline->start->wait_for_state(qr/^(snapshot|streaming)$/);
my $listed = 0;
for my $kill (1 .. 2)
{
	my $changes = $pipeline->status('changes') || 0;
	poll_until(sub { return ($pipeline->status('changes') || 0) > $changes + 100; }, 20);
	$listed += $postgres->psql('select count(*) from cdc_bridge.snapshot_reread');
	$postgres->kill9_process($pipeline->status('ingest_pid') || next);
	$pipeline->wait_for_state(qr/^(snapshot|streaming)$/);
}
$pipeline->wait_for_tables(90);
settle('a copy under writers of all images');
cmp_ok($listed, '>', 0, 'rows had to be read again');

# ---- a table joins, another is copied anew, one more kill
write_for_a_while();
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.later'); select cdc_resync_table('shop_in', 'shop.wide')});
poll_until(sub { return $postgres->psql(q{select count(*) > 0 from cdc_bridge.snapshot_chunk where state = 'done'}) eq 't'; }, 20);
$postgres->kill9_process($pipeline->status('ingest_pid'));
$pipeline->wait_for_state(qr/^(snapshot|streaming)$/);
$pipeline->wait_for_tables(90);
settle('a table joined and one copied anew');

# ---- plain streaming, in every way to write
for my $options ('{"collapse": "off", "max_rows_per_second": 0}', '{"collapse": "auto", "batch_max_rows": 10000}')
{
	$postgres->psql("select cdc_alter_pipeline('shop_in', options => '$options')");
	$pipeline->wait_for_state('streaming');
	write_for_a_while();
	my $changes = $pipeline->status('changes') || 0;
	poll_until(sub { return ($pipeline->status('changes') || 0) > $changes + 300; }) or die "the stream stands still\n" . $pipeline->describe;
	$postgres->kill9_process($pipeline->status('ingest_pid')) if $options =~ /auto/;
	$pipeline->wait_for_state('streaming');
	settle("streaming, options $options");
}

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

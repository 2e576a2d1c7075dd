# B6: row images that leave columns out (binlog_row_image = MINIMAL, NOBLOB and MariaDB's FULL_NODUP, chosen by a session in the middle of
# the stream), and M25: documents that come as differences (PARTIAL_JSON), in every tier. What an image leaves out is the row's own or the
# column's default, never NULL by itself; what cannot be known stops its table and says why.
# also: mariadb118-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $mysql = $source->is_mysql;
my $long = 'long text that stays as it is ' x 200;
my $json = $mysql ? 'json' : 'text';
my $expression = $mysql ? ', dx int default (1 + 2), sg int generated always as (i + 1) stored, vg int generated always as (i + 2) virtual'
  : ', dx int default (1 + 2), sg int generated always as (i + 1) stored';

# one table of everything for each tier
my $columns = "id int primary key auto_increment, i int default 7, s varchar(20) default 'ab''c', n int, nn int not null, "
  . "e enum('x', 'y') not null, label enum('p', 'q') default 'q', flags set('u', 'v') default 'u,v', ts timestamp(3) not null default current_timestamp(3), at datetime default '2001-02-03 04:05:06', "
  . "up datetime default null on update current_timestamp, b blob, t longtext, d date default '2001-02-03', bt bit(4) default b'101', "
  . "de decimal(8,3) default 1.5, dn decimal(5,0) not null, f float default 1.25, db double default 1e10, c char(5) default 'x', y year default 2001, tm time default '-01:02:03', "
  . "bin binary(3) not null, l1 varchar(10) character set latin1 default '\xc3\xa9', j $json, k $json$expression";
my @tiers = qw(lean executor view parts);
$source->sql('create database shop', map { "create table shop.$_ ($columns)" } @tiers);
my $target = "id bigint primary key, i int, s text, n int, nn int, e text, label text, flags text, ts timestamptz, at timestamp, up timestamp, b bytea, t text, d date, bt bit(4), "
  . 'de numeric(8,3), dn numeric(5), f real, db double precision, c text, y smallint, tm interval, bin bytea, l1 text, j text, k '
  . ($mysql ? 'json' : 'text') . ', dx int, sg int, ' . ($mysql ? 'vg int, ' : '') . 'own int default 5';
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create schema shop', "create table shop.executor ($target)",
	'create function shop.nothing() returns trigger language plpgsql as $$ begin return new; end $$',
	'create trigger nothing before insert or update on shop.executor for each row execute function shop.nothing()',
	'alter table shop.executor enable always trigger nothing',
	"create table shop.behind ($target)", 'create view shop.view as select * from shop.behind',
	"create table shop.parts ($target) partition by range (id)",
	'create table shop.parts_1 partition of shop.parts for values from (0) to (3)',
	"create table shop.parts_2 (own int default 5, dropped int, $target)" =~ s/, own int default 5\z//r =~ s/, own int default 5\)/)/r,
	'alter table shop.parts_2 drop dropped',
	'alter table shop.parts attach partition shop.parts_2 for values from (3) to (1000000)'));

$source->sql('create table shop.keyed (a int not null, b int not null, c int default 3, t text, unique key kb (b), unique key ka (a))',
	'create table shop.keyless (a int, b int default 2, c text)',
	"create table shop.lost (id int primary key, v int, w int)", 'insert into shop.lost values (1, 1, 1), (2, 2, 2), (3, 3, 3)',
	'create table shop.altered (id int primary key, v int default 1, w int)',
	"create table shop.changed (id int primary key, v int, w int default 3)",
	'create trigger shop.before_insert before insert on shop.changed for each row set new.w = 99',
	'create trigger shop.before_update before update on shop.changed for each row set new.w = new.w + 1',
	'create table shop.strange (id int primary key, v int, f float default 16777216)');
$source->sql("grant lock tables on *.* to repl");    # MySQL's copies of tables without a key need it
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($pipeline->status('tables_stopped'), '0', 'all tables stream') or diag($pipeline->describe);

# a session of its own: images are changed in the middle of the stream, and others are whole
my $session = $source->connect;
$session->do($_) for 'use shop', "set session sql_mode = ''";
my $image = sub { $session->do("set session binlog_row_image = $_[0]") };
my $do = sub { $session->do($_) for @_ };

for my $kind ('MINIMAL', 'NOBLOB', $source->has_full_nodup ? 'FULL_NODUP' : ())
{
	for my $table (@tiers)
	{
		$image->('FULL');
		$do->("delete from $table", "insert into $table (id, i, s, b, t, j) values (1, 1, 'full', 'blob', '$long', '{\"a\": 1}')");
		$image->($kind);
		$do->("insert into $table (id, n) values (2, 5)", "insert into $table () values ()",
			"insert into $table (id, i, s, n, dx, b) values (4, default, default, 1, default, x'00ff')",
			"update $table set i = 8 where id = 1", "update $table set n = 9, b = 'other' where id = 1", "update $table set s = null where id = 1",
			"update $table set t = concat(t, 'more') where id = 1", "update $table set id = 100 where id = 1", "update $table set n = 10 where id = 100",
			"update $table set i = default, e = 'y' where id = 2", "delete from $table where id = 3");
		$image->('FULL');
		$do->("update $table set nn = nn + 1 where id = 4");
		$image->($kind);
		$do->('start transaction', "insert into $table (id) values (50)", "update $table set n = 1 where id = 50", "update $table set s = 'in one' where id = 50",
			"delete from $table where id = 50", "insert into $table (id, s) values (50, 'again')", "update $table set n = 3 where id = 50",
			"update $table set id = 51 where id = 50", "update $table set d = null where id = 51", "update $table set id = 3 where id = 51", 'commit');
		# MariaDB tells what REPLACE did only with the whole row before
		$do->("replace into $table (id, s) values (100, 'replaced')", "insert into $table (id, s) values (100, 'x'), (101, 'y') on duplicate key update n = 77")
		  if $mysql || $kind eq 'FULL_NODUP';
		# gives the key although it stays, as REPLACE does
		$do->("update $table set id = 4, n = n + 1 where id = 4") if $kind eq 'FULL_NODUP';
	}
	$do->('delete from keyless', 'insert into keyless (a) values (1), (1), (2)', 'update keyless set b = 5 where a = 2', "update keyless set c = 'text' where a = 1 limit 1",
		'delete from keyless where a = 1 limit 1', 'insert into keyless (c) values (null)');
	$do->('delete from keyed', "insert into keyed (a, b) values (1, 2), (3, 4)", 'update keyed set c = 2 where a = 1', "update keyed set a = 5, t = 'x' where b = 2", 'update keyed set b = 7 where b = 4',
		'delete from keyed where b = 2', "xa start 'images'", "update keyed set t = 'kept till the commit' where b = 7", "xa end 'images'", "xa prepare 'images'", "xa commit 'images'");
	$do->('delete from changed', 'insert into changed (id) values (1)', 'update changed set v = 2 where id = 1');
	$pipeline->wait_for_catchup;
	is($pipeline->status('tables_stopped'), '0', "$kind: no table stopped") or diag($pipeline->describe);
	$pipeline->is_same("B6: $kind images change what they name and nothing else, in table $_", $_) for @tiers, qw(keyed keyless changed);
}
is($pipeline->table_status('lean', 'tier'), 'lean', 'tier lean');
is($pipeline->table_status('executor', 'tier'), 'executor', 'tier executor');
is($pipeline->table_status('view', 'tier'), 'sql', 'tier sql');
is($postgres->psql('select count(*) from shop.executor where own is distinct from 5'), '0', "the target's own columns keep their values");
is($postgres->psql("select coalesce(sum(conflicts), 0) from pg_stat_cdc_table"), '0', 'no conflicts');

# ---- M25: differences of documents, with the document before in the image and without, stored as text, json and jsonb
if ($mysql)
{
	my $pad = 'x' x 300;
	$do->("set session binlog_row_value_options = 'PARTIAL_JSON'");
	for my $kind (qw(FULL MINIMAL NOBLOB))
	{
		$image->($kind);
		for my $table (@tiers)
		{
			$do->("delete from $table",
				"insert into $table (id, j, k) values (1, json_object('pad', '$pad', 'a', 1, 'o', json_object('x', json_object('z', 1.50)), 'arr', json_array(1, 2, 3, '$pad'), 'd', cast(1.0 as decimal(10,5)), 'big', 18446744073709551615), "
				. "json_object('pad', '$pad')), (2, null, null)");
			my $n = 0;
			for my $new ("json_set(j, '\$.a', 5)", "json_set(j, '\$.o.x.y', 'deep')", "json_set(j, '\$.newkey', 1.50)", "json_set(j, '\$.arr[0]', 10)", "json_set(j, '\$.arr[99]', 'behind')",
				"json_set(j, '\$.arr[last]', 'last')", "json_set(j, '\$.a[0]', 'itself')", "json_set(j, '\$.a[1]', 'becomes an array')", "json_replace(j, '\$.a', cast('[]' as json))",
				"json_remove(j, '\$.arr[1]')", "json_remove(j, '\$.arr[last]')", "json_remove(j, '\$.o.x')", "json_set(j, '\$._u', 2, '\$.\"1x\"', 3, '\$.\"\"', 4, '\$.\"q\\\\\"uote\"', 5)",
				"json_set(j, '\$.d', cast('12.3400' as decimal(20,10)), '\$.dt', cast('2001-02-03 04:05:06' as datetime), '\$.dbl', 1e300, '\$.neg', -0.0e0)",
				"json_set(j, '\$.arr[last-1]', 'l1')", "json_remove(json_set(j, '\$.a', 1), '\$.d')", "json_set(j, '\$.arr', json_array(1, 2, 3), '\$.arr[1]', 'second', '\$.arr[7]', 'seventh')",
				"json_set(j, '\$.a', j->'\$.a')", "json_remove(j, '\$.arr[0]', '\$.arr[0]')", "json_set(j, '\$.\"a.b[0]\"', 'k', '\$.\"tab\\\\tx\"', 'k', '\$.\xc3\xa9\xe2\x82\xac', '\xf0\x9f\x98\x80')")
			{
				$do->("update $table set j = $new, n = " . ++$n . ' where id = 1');
			}
			$do->("update $table set j = json_set(j, '\$.both', 1), k = json_set(k, '\$.both', 2) where id = 1", "update $table set k = json_set(k, '\$.n', 3) where id = 1",
				"update $table set n = 100", "update $table set id = 3, j = json_set(j, '\$.moved', true) where id = 1", "update $table set j = null where id = 3", "update $table set j = '{\"whole\": 1}'",
				"update $table set id = 1, k = json_remove(k, '\$.n') where id = 3");
			# many in one transaction come to one write
			$do->('start transaction', (map { "update $table set k = json_set(k, '\$.c$_', $_, '\$.n', $_) where id = 1" } 1 .. 20), 'commit');
		}
		$pipeline->wait_for_catchup;
		is($pipeline->status('tables_stopped'), '0', "$kind: no table stopped") or diag($pipeline->describe);
		$pipeline->is_same("M25: differences with $kind images, in table $_", $_) for @tiers;
		# where the target is text, it is the very text of the source
		for my $table (qw(executor view parts))
		{
			my @want = map { "$_->[0]|$_->[1]" } @{ $session->selectall_arrayref("select id, sha2(concat(j, k), 256) from $table where j is not null and k is not null order by id") };
			is($postgres->psql("select id, encode(sha256(convert_to(concat(j::text, k::text), 'UTF8')), 'hex') from shop.$table where j is not null and k is not null order by id"), join("\n", @want), "$kind: letter by letter in $table");
		}
	}
	$do->("set session binlog_row_value_options = ''");
}
$pipeline->is_verified('and cdc_verify() says so', qw(lean executor parts keyed changed));

# ---- a row that is not there cannot be made from a part of it; a delete and a whole image need nothing
$image->('MINIMAL');
$postgres->psql('delete from shop.lost where id in (1, 2)');
$do->('update lost set v = 10 where id = 3', 'delete from lost where id = 2');
$pipeline->wait_for_catchup;
is($pipeline->table_status('lost', "state || ' ' || conflicts"), 'streaming 1', 'the key is enough to delete');
$do->('update lost set v = 11 where id = 1');
$pipeline->wait_for_table_state('lost', 'stopped')->wait_for_catchup;
is($pipeline->table_status('lost', 'last_error_sqlstate'), 'YC007', 'a partial change of a row that the target lacks stops its table');
like($pipeline->table_status('lost', "last_error || ' ' || last_error_hint"), qr/"shop\.lost" is changed in part.*cdc_resync_table/, 'and says what to do');
$postgres->psql("select cdc_resync_table('shop_in', 'shop.lost')");
$pipeline->wait_for_table_state('lost', 'streaming');
$do->('update lost set w = 12 where id = 1');
$pipeline->wait_for_catchup;
$pipeline->is_same('after that it goes on', 'lost');

# ---- a default that cannot be had exactly is not guessed
$do->('insert into strange (id, f) values (1, 1.5)');
$pipeline->wait_for_catchup;
$pipeline->is_same('a value that is given', 'strange');
$do->('insert into strange (id) values (2)');
$pipeline->wait_for_table_state('strange', 'stopped');
is($pipeline->table_status('strange', 'last_error_sqlstate'), 'YC005', 'a FLOAT default that the server prints rounded stops the table');
like($pipeline->table_status('strange', 'last_error_detail'), qr/Column "f" is not in the row image/, 'which names the column');

# ---- a default that is altered in the middle of the stream: a row gets the one of its time
$do->('insert into altered (id) values (1)');
$source->sql('alter table shop.altered alter column v set default 5');
$image->('FULL');
$do->('insert into altered (id) values (2)');
$image->('MINIMAL');
$do->('insert into altered (id, v, w) values (3, 3, 3)');
$pipeline->wait_for_catchup;
$pipeline->is_same('a default that is altered harms no row that is told whole', 'altered');
$postgres->restart;
$pipeline->wait_for_state('streaming');
$do->('insert into altered (id) values (4)');
$pipeline->wait_for_catchup;
$pipeline->is_same('one that is not told is the one that was declared then, also after a restart', 'altered');

# ---- what MariaDB does not log
if (!$mysql)
{
	$postgres->psql('create table shop.generated (id int primary key, v int, twice int generated always as (v * 2) stored)');
	$source->sql('create table shop.upsert (id int primary key, v int, w int default 4)', 'insert into shop.upsert values (1, 1, 1), (2, 2, 2)',
		'create table shop.computed (id int primary key, v int, twice int generated always as (v * 2) virtual)', 'insert into shop.computed (id, v) values (1, 1)',
		'create table shop.generated (id int primary key, v int, twice int generated always as (v * 2) virtual)', 'insert into shop.generated (id, v) values (1, 1)');
	$pipeline->wait_for_catchup;
	$pipeline->wait_for_table_state($_, 'streaming') for qw(upsert computed generated);
	$do->("insert into generated (id, v) values (2, 2)", 'update generated set v = 5 where id = 1', 'update upsert set id = 3, v = 7 where id = 2');
	$pipeline->wait_for_catchup;
	$pipeline->is_same('a column that the target computes itself needs no value', 'generated', 'upsert');
	$do->('update computed set v = 5 where id = 1', 'insert into computed (id, v) values (2, 3)', 'update computed set id = 3 where id = 2');
	$pipeline->wait_for_catchup;
	$pipeline->is_same('B6: a VIRTUAL column that MariaDB does not log is asked for', 'computed');
	$do->('replace into upsert (id, v) values (1, 9)');
	$pipeline->wait_for_table_state('upsert', 'stopped');
	like($pipeline->table_status('upsert', 'last_error'), qr/may stand for a REPLACE/, 'B6: so does an update that may be a REPLACE');
}

# ---- a change in part that cannot be applied is kept so that one can see what it said
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"on_error": "dead_letter"}')});
$pipeline->wait_for_state('streaming');
$postgres->psql('delete from shop.lost where id = 3');
$postgres->psql('update shop.lean set k = null where id = 1') if $mysql;
$do->('update lost set v = 33 where id = 3', "insert into lost (id) values (4)", 'update lost set w = 5 where id = 4');
$do->("set session binlog_row_value_options = 'PARTIAL_JSON'", q{update lean set k = json_set(k, '$.dead', 2) where id = 1}) if $mysql;
$pipeline->wait_for_catchup;
is($postgres->psql("select operation, before, after, error_sqlstate from cdc_dead_letters where source_table = 'lost'"), 'update|{"id": "3"}|{"v": "33"}|YC007', 'a dead letter has what the image had');
is($postgres->psql("select jsonb_build_object('k', (after->'k') - 'hex'::text) from cdc_dead_letters where source_table = 'lean'"), '{"k": {"json_diff": "[{\\"op\\": \\"insert\\", \\"path\\": \\"$.dead\\", \\"value\\": 2}]"}}',
	'and a document in parts its differences') if $mysql;
is($postgres->psql('select v, w from shop.lost where id = 4'), '|5', 'what is around it is applied');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

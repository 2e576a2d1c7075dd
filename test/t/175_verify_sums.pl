# cdc_verify() by sums: chunks that are equal are not read, what differs is found whatever it is and wherever it stands, and a sum hides nothing
# that only looks alike.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $rows = 30_000;
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
my $numbers = '(select ' . join(' + ', map { 10**($_ - 1) . " * d$_.d" } 1 .. 5) . ' n from '
  . join(' cross join ', map { '(select 0 d' . join('', map { " union all select $_" } 1 .. 9) . ") d$_" } 1 .. 5) . ') x';
$source->sql(q{set sql_mode = ''}, 'create database shop',
	'create table shop.plain (id bigint unsigned not null primary key, a int, b varchar(60), c varchar(60), d decimal(12,3) unsigned zerofill, e datetime(3)) default charset utf8mb4',
	"insert into shop.plain select n * 2, n % 1000, concat('row ', n), if(n % 3, null, ''), n / 8, date_add('2024-01-01', interval n * 1234 second) from $numbers where n between 1 and $rows",
	# keys of several columns, in another order than the columns, of types that both sides order alike
	'create table shop.pair (v varchar(20), day date not null, uid varbinary(16) not null, t time(2) not null, primary key (t, uid, day)) default charset utf8mb4',
	"insert into shop.pair select concat('v', n), '2024-01-01' + interval n % 7 day, unhex(left(sha2(n, 256), 2 + n % 15 * 2)), sec_to_time(n % 5 * 7000 - 9000.5) from $numbers where n < 5000 on duplicate key update v = v",
	'create table shop.part (id int not null primary key, a text) default charset utf8mb4', "insert into shop.part select n, concat('text ', n) from $numbers where n < 6000",
	# a text as the key, a column that has no sum
	'create table shop.text_key (k varchar(20) character set latin1 not null primary key, a int, b int, f double) default charset utf8mb4',
	"insert into shop.text_key select concat(if(n % 2, 'K', 'k'), n), n, n, n / 7 from $numbers where n < 4000",
	'create table shop.alike (id int primary key, a varchar(20), b varchar(20), d date, z date) default charset utf8mb4',
	map({ "insert into shop.alike values ($_, 'ab', 'c', '2024-01-01', '2024-01-01')" } 1 .. 9),
	# no character of the set: the server makes it a question mark
	'create table shop.lossy (id int primary key, k varchar(20) character set cp1251) default charset utf8mb4', q{insert into shop.lossy values (1, 'ж'), (2, _cp1251 x'9841')},
	q{update shop.alike set z = '0000-00-00' where id in (8, 9)}, 'update shop.alike set a = null where id = 5');
$postgres->psql(join(";\n", 'create schema shop', 'create table shop.part (id int not null primary key, a text) partition by hash (id)',
	map { "create table shop.part_$_ partition of shop.part for values with (modulus 3, remainder $_)" } 0 .. 2));

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	options => '{"snapshot_chunk_rows": 2000, "zero_date": null, "invalid_bytes": "replace"}')->setup;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;

sub verified
{
	my ($columns, $table) = @_;
	return $postgres->psql("select $columns from pg_stat_cdc_verify where request = $pipeline->{verify_request} and source_table = '$table'");
}

# ---- nothing moves

$pipeline->is_verified('all is equal: nothing is found');
is(verified(q{method || ' ' || rows_source || ' ' || rows_target || ' ' || rows_read || ' ' || (chunks = chunks_by_sum)}, 'plain'), "sums $rows $rows 0 true", 'a plain table: no row is read');
is(verified(q{method || ' ' || rows_read || ' ' || (rows_source = rows_target)}, 'pair'), 'sums 0 true', 'a key of several columns: no row is read');
is(verified(q{method || ' ' || rows_read || ' ' || rows_target}, 'part'), 'sums 0 6000', 'a partitioned target: no row is read');
is(verified(q{method || ' ' || rows_read || ' ' || rows_target || ' ' || rows_source}, 'text_key'), 'columns 0 4000 4000', 'a text as the key, and a float: only these are read');
is(verified(q{method || ' ' || rows_read}, 'alike'), 'sums 9', 'values that a policy replaced: their chunk is read, and is equal');
is($pipeline->verify_mode('sample'), '', 'a sample finds nothing');

# ---- what looks alike

$postgres->psql(join(';', q{update shop.alike set a = 'a', b = 'bc' where id = 1}, q{update shop.alike set a = 'abc', b = '' where id = 2}, q{update shop.alike set a = 'N' where id = 5},
	q{update shop.lossy set k = '?A' where id = 2}, q{update shop.alike set z = '0001-01-01 BC' where id = 8}, q{update shop.alike set d = null where id = 3}));
is($pipeline->verify('alike', 'lossy'), join("\n", 'alike: 0 missing, 0 extra, 5 different, 0 unsettled, done', 'lossy: 0 missing, 0 extra, 1 different, 0 unsettled, done', 'alike: different {1} {a,b}', 'alike: different {2} {a,b}', 'alike: different {3} {d}',
	'alike: different {5} {a}', 'alike: different {8} {z}', 'lossy: different {2} {k}') . "\n", 'values that are alike in some form are told apart');

# ---- under load: at the ends, at bounds of chunks, in each leaf; more keys than one step looks at

my $seed = $ENV{CDC_SEED} // time();
note("seed $seed");
$source->{seed} = $seed;
# each 10th row is left alone, and odd ids are new
$source->start_writers(4, sub {
	my ($dbh) = @_;
	my $id = 2 * (1 + int(rand($rows)));
	$id += 2 if $id % 20 == 0;
	my $what = int(rand(10));
	if ($what < 6) { $dbh->do("update shop.plain set a = a + 1, b = concat('r', rand()) where id = $id"); }
	elsif ($what < 8) { $dbh->do('insert ignore into shop.plain (id, a) values (' . ($id + 1) . ', 1)'); }
	else { $dbh->do("delete from shop.plain where id = $id or id = $id + 1"); }
	$dbh->do("update shop.text_key set a = a + 1, f = f + 0.1 where k = 'k" . (4 * int(rand(1000)) + 2) . "'");
});
my $last = 2 * $rows;
my %pair = map { $_ => $postgres->psql("select format('{%s,%s,%s}', t, uid, day) from shop.pair order by t $_, uid $_, day $_ limit 1") } 'asc', 'desc';
$postgres->psql(join(';', 'insert into shop.plain (id, a) values (0, 1), (18446744073709551615, 1)', "delete from shop.plain where id in (4000, $last - 20)",
	q{update shop.plain set c = case when c is null then '' end where id = 8000}, q{update shop.plain set d = d + 0.001 where id = 20000}, q{update shop.plain set e = e + '1 ms' where id = 40000},
	q{update shop.plain set e = '2024-01-01 00:00:00.0005'::timestamp(6) where id = 40020},
	q{delete from shop.pair where (t, uid, day) in (select t, uid, day from shop.pair order by 1, 2, 3 limit 1)}, q{delete from shop.pair where (t, uid, day) in (select t, uid, day from shop.pair order by 1 desc, 2 desc, 3 desc limit 1)},
	q{insert into shop.pair select 'x', day, uid || '\x00', t from shop.pair order by t desc, uid limit 1},
	'update shop.part set a = a || id where id in (17, 18, 19, 20, 21)', 'insert into shop.part select n, null from generate_series(6000, 30999) n', 'insert into shop.part values (-1, null)',
	q{update shop.text_key set f = f + 1e-9 where k = 'K1'}, q{update shop.text_key set b = null where k = 'K3'}, q{insert into shop.text_key values ('☃', 1, 1, 1)}, q{delete from shop.text_key where k = 'K5'}));
my $extra_pair = $postgres->psql(q{select format('{%s,"%s",%s}', t, replace(uid::text, '\\', '\\\\'), day) from shop.pair where v = 'x'});
my $found = $pipeline->verify('plain', 'pair', 'text_key');
my @lines = sort grep { !/: \d+ missing, / } split(/\n/, $found);
my @expected = sort('plain: extra {0}', 'plain: extra {18446744073709551615}', 'plain: missing {4000}', "plain: missing {${\ ($last - 20)}}", 'plain: different {8000} {c}', 'plain: different {20000} {d}',
	'plain: different {40000} {e}', 'plain: different {40020} {e}', "pair: extra $extra_pair", 'text_key: different {K1} {f}', 'text_key: different {K3} {b}', 'text_key: extra {☃}', 'text_key: missing {K5}');
is(join("\n", grep { !/^pair: missing/ } @lines), join("\n", @expected), 'under load each planted difference is found with its column, and nothing else');
is(scalar(grep { /^pair: missing/ } @lines), 2, 'and the first and the last of the keys of several columns');
note($postgres->psql("select source_table, chunks, chunks_by_sum, rows_source, rows_read from pg_stat_cdc_verify where request = $pipeline->{verify_request}"));
cmp_ok(verified('chunks_by_sum', 'plain'), '>', 0, 'chunks were compared by sums meanwhile');
$source->stop_writers;
is($pipeline->verify('part') =~ s/^part: extra .*\n//mgr, "part: 0 missing, 25001 extra, 5 different, 0 unsettled, done\n" . join('', map { "part: different {$_} {a}\n" } 17 .. 21),
	'25,001 rows too many in three leaves are counted, and no other');
$pipeline->wait_for_catchup;
is($pipeline->verify('plain') =~ s/^plain: .*\n//mgr, '', 'and when all is quiet again');
cmp_ok(verified('rows_read', 'plain'), '<', $rows / 2, 'only the parts that differ are read');
cmp_ok(verified('rows_read', 'plain'), '>', 0, 'which are some');

done_testing();

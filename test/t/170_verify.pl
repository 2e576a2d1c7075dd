# cdc_verify(): tables that are equal are found equal while 8 processes write, in each mode; planted differences of every kind and
# type are found under the same load, with their column, and nothing else is.
# takes: 25 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_hot change_shop create_hot create_shop fill_shop);
use CdcBridge::Source;
use Test::More;

my $rows = 3000;
# sync_binlog = 1: the time between the binary log and the engine's commit is longer, and with it the race that matters
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
my $mysql = $source->is_mysql;
create_shop($source);
fill_shop($source, $rows);
create_hot($source, 40);

# One row for each key, and a column of each type, which nobody changes at the source. column => [ type, value, how it is spoilt here ]
my %column = (
	a_int => [ 'int', '5', '6' ],
	a_big => [ 'bigint unsigned', '18446744073709551615', '18446744073709551614' ],
	a_bool => [ 'tinyint(1)', '1', '0' ],
	a_decimal => [ 'decimal(20,6)', '1.5', '1.500001' ],
	a_float => [ 'float', '0.1', "'0.10000001'::float4" ],
	a_double => [ 'double', '0.1', '0.1::float8 + 1.5e-17' ],
	a_date => [ 'date', "'2024-02-29'", "'2024-03-01'" ],
	a_datetime => [ 'datetime(6)', "'2026-03-29 02:30:00.000001'", "'2026-03-29 02:30:00.000002'" ],
	a_timestamp => [ 'timestamp(3) null', "'2026-03-29 01:30:00.5'", "'2026-03-29 01:30:00.501+00'" ],
	a_time => [ 'time(3)', "'-12:34:56.789'", "'-12:34:56.788'" ],
	a_year => [ 'year', '2026', '2027' ],
	a_char => [ 'char(10)', "'pad  '", "'pat'" ],
	a_varchar => [ 'varchar(40)', "'blank'", "'blank '" ],
	a_text => [ 'text', "''", 'null' ],
	a_null => [ 'text', 'null', "''" ],
	a_case => [ 'varchar(40)', "'Case'", "'case'" ],
	a_latin => [ 'varchar(40) character set latin1', "'café'", "'cafe'" ],
	a_long => [ 'longtext', "repeat('é', 70000)", "repeat('é', 69999) || 'e'" ],
	a_binary => [ 'binary(4)', "x'00ff'", q{'\x00ff0001'} ],
	a_blob => [ 'blob', "x'00'", q{'\x0000'} ],
	a_enum => [ "enum('x', 'y')", "'x'", "'y'" ],
	a_set => [ "set('x', 'y')", "'x,y'", "'y,x'" ],
	a_bit => [ 'bit(9)', "b'100000001'", "B'100000000'" ],
	a_json => [ 'json', q{'{"a": 1, "b": [1, 2.5]}'}, q{'{"a": 1, "c": [1, 2.5]}'} ],
);
if (!$mysql)
{
	$column{a_uuid} = [ 'uuid', "'123e4567-e89b-12d3-a456-426655440000'", "'123e4567-e89b-12d3-a456-426655440001'" ];
	$column{a_inet} = [ 'inet6', "'2001:db8::1'", "'2001:db8::2'" ];
}
my @columns = sort keys %column;
$source->sql("set sql_mode = ''", 'create table shop.every (id int primary key, ' . join(', ', map { "$_ $column{$_}[0]" } @columns) . ') default charset utf8mb4',
	map { "insert into shop.every values ($_, " . join(', ', map { $column{$_}[1] } @columns) . ')' } 1 .. @columns + 2);

# Keys of each type: name => [ definition, values, a key that only the target gets ]
my %key = (
	k_enum => [ "k enum('z', 'y', 'x') not null", [ "'z'", "'x'" ], "'y'" ],
	k_float => [ 'k float not null', [ '0.1', '1e10', '-2.5' ], '0.3' ],
	k_double => [ 'k double not null', [ '0.1', '1e300', '-2.5' ], '0.3' ],
	k_bit => [ 'k bit(9) not null', [ "b'1'", "b'100000000'" ], "B'000000010'" ],
	k_char => [ 'k char(5) not null', [ "'a'", "'B'", "'ü'" ], "'c'" ],
	k_varchar => [ 'k varchar(20) collate utf8mb4_general_ci not null', [ "'a'", "'B'", "'ü'" ], "'A'" ],
	k_latin => [ 'k varchar(20) character set latin1 not null', [ "'a'", "'é'" ], "'☃'" ],
	k_binary => [ 'k binary(3) not null', [ "x'00'", "x'ff00'" ], q{'\x010203'} ],
	k_decimal => [ 'k decimal(10,3) not null', [ '1.5', '-0.001' ], '1.501' ],
	k_date => [ 'k date not null', [ "'2024-02-29'" ], "'12024-02-29'" ],
	k_datetime => [ 'k datetime(3) not null', [ "'2024-02-29 01:02:03.004'" ], "'2024-02-29 01:02:03.005'" ],
	k_timestamp => [ "k timestamp(6) not null default '2000-01-01'", [ "'2024-02-29 01:02:03.000004'" ], "'2024-02-29 01:02:03.000005+00'" ],
	k_time => [ 'k time(1) not null', [ "'-01:00:00.5'", "'838:59:58'" ], "'-01:00:00.4'" ],
	k_year => [ 'k year not null', [ '2026' ], '2027' ],
	k_pair => [ 'k int not null, l varchar(10) not null', [ "1, 'x'", "1, 'y'" ], "2, 'x'" ],
);
if (!$mysql)
{
	$key{k_uuid} = [ 'k uuid not null', [ "'123e4567-e89b-12d3-a456-426655440000'" ], "'123e4567-e89b-12d3-a456-426655440001'" ];
	$key{k_inet} = [ 'k inet6 not null', [ "'2001:db8::1'" ], "'2001:db8::2'" ];
}
for my $name (sort keys %key)
{
	my ($definition, $values) = @{ $key{$name} };
	my $list = $definition =~ /, l / ? 'k, l' : 'k';
	$source->sql("create table shop.$name ($definition, v int, primary key ($list)) default charset utf8mb4",
		map { "insert into shop.$name values ($_, 1)" } @$values);
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	options => '{"schema_changes": "exception", "snapshot_chunk_rows": 100, "verify_sample_percent": 30}')->setup;
my $seed = $ENV{CDC_SEED} // time();
note("seed $seed");
$source->{seed} = $seed;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;

sub write_on { $source->start_writers(8, sub { my ($dbh, $number) = @_; $number % 2 ? change_hot($dbh, 40) : change_shop($dbh, $rows); }); }

# ---- all is equal, nothing is found

$pipeline->is_verified('nothing moves: nothing is found');
my $request = $pipeline->{verify_request};
is($postgres->psql("select count(*) from pg_stat_cdc_verify where request = $request and state = 'done' and rows_source = rows_target and position_file is not null"),
	9 + 1 + keys %key, 'every table is done, with as many rows on each side, and the position is told');
is($postgres->psql("select rows_source from pg_stat_cdc_verify where request = $request and source_table = 'orders'"), $rows, 'all rows were read');

write_on();
for my $mode (qw(full count sample full))
{
	my $found = $pipeline->verify_mode($mode);
	# rows of hot tables may change each time one looks: those are told, and are no difference
	my @lines = grep { !/^hot_\w+: 0 missing, 0 extra, 0 different, \d+ unsettled, done$/ } split(/\n/, $found);
	is(join("\n", @lines), '', "mode $mode under 8 writers: nothing is found");
}
cmp_ok($postgres->psql("select sum(rows_source) from pg_stat_cdc_verify where mode = 'sample' and source_table in ('orders', 'order_item')"), '<', 2 * $rows,
	'the sample did not read all rows');

# ---- planted differences, under the same load

# rows that no writer touches, so that the stream does not mend what is planted
$source->sql(map { "insert into shop.orders (id, customer_id, status, total, note, placed_at) values ($_, 1, 'open', 1.5, if($_ % 2, null, 'n'), '2026-01-01')" } 900001 .. 900010);
$pipeline->wait_for_catchup;

my @planted;
for my $i (0 .. $#columns)
{
	my $id = $i + 1;
	$postgres->psql("update shop.every set $columns[$i] = $column{$columns[$i]}[2] where id = $id");
	push @planted, "every: different {$id} {$columns[$i]}";
}
my $last = @columns + 1;
$postgres->psql(join(';', "update shop.every set a_int = null, a_json = null where id = $last",
	'delete from shop.every where id = ' . ($last + 1),
	'insert into shop.every (id) values (-1)',
	'delete from shop.orders where id = 900001',
	"update shop.orders set note = '' where id = 900003", "update shop.orders set total = total + 0.0001 where id = 900004",
	"insert into shop.orders select 900100, customer_id, status, total, note, placed_at from shop.orders where id = 900005",
	"insert into shop.hot_text values ('nobody', 1)"));
push @planted, "every: different {$last} {a_int,a_json}", 'every: missing {' . ($last + 1) . '}', 'every: extra {-1}', 'orders: missing {900001}',
	'orders: different {900003} {note}', 'orders: different {900004} {total}', 'orders: extra {900100}', 'hot_text: extra {nobody}';
for my $name (sort keys %key)
{
	my ($definition, $values, $extra) = @{ $key{$name} };
	my $list = $definition =~ /, l / ? 'k, l' : 'k';
	# a row that is there only, and one that is not there
	my $text = $postgres->psql("insert into shop.$name ($list, v) values ($extra, 1) returning array[${\ join(', ', map { \"format('%s', $_)\" } split(/, /, $list))}]");
	push @planted, "$name: extra $text";
	$text = $postgres->psql("delete from shop.$name where ctid = (select min(ctid) from shop.$name) returning array[${\ join(', ', map { \"format('%s', $_)\" } split(/, /, $list))}]");
	push @planted, "$name: missing $text";
}
my $found = $pipeline->verify;
my @found = grep { !/: \d+ missing, / } split(/\n/, $found);
is(join("\n", sort @found), join("\n", sort @planted), 'each planted difference is found with its column, and nothing else');
my $counts = $postgres->psql("select sum(missing) || ' ' || sum(extra) || ' ' || sum(different) from pg_stat_cdc_verify where request = $pipeline->{verify_request}");
my $expected = join(' ', map { my $kind = $_; scalar grep { /: $kind / } @planted } qw(missing extra different));
is($counts, $expected, 'the counts say the same');
$source->stop_writers;

# mode count sees that rows are missing or too many, not that they differ
$postgres->psql('delete from shop.orders where id = 900002');
is($pipeline->verify_mode('count', 'orders'), "orders: 1 missing, 0 extra, 0 different, 0 unsettled, done\n", 'mode count: one row less');
like($pipeline->verify_mode('sample', 'orders'), qr/^orders: [12] missing, [01] extra, \d different, 0 unsettled, done$/m, 'mode sample counts too');

# ---- what is queued waits for the pipeline, and goes with it

$pipeline->stop;
$request = $postgres->psql("select cdc_verify('shop_in', '{shop.k_date, shop.k_y*}', 'count')");
like($postgres->{messages}, qr/verification $request waits until pipeline "shop_in" runs/, 'a request to a stopped pipeline says that it waits');
like($postgres->psql_error("call cdc_wait_for_verify($request)"), qr/pipeline "shop_in" is stopped/, 'waiting for it would be in vain');
is($postgres->psql("select request_state from pg_stat_cdc_verify where request = $request"), 'queued', 'it is queued');
my $cancelled = $postgres->psql("select cdc_verify('shop_in')");
$postgres->psql("select cdc_cancel_verify($cancelled)");
$pipeline->start->wait_for_state('streaming');
is($pipeline->verify_result($request), '', 'it is done when the pipeline runs again');
is($postgres->psql("select string_agg(source_table || ' ' || state, ', ' order by source_table) from pg_stat_cdc_verify where request = $request"),
	'k_date done, k_year done', 'with the tables that were asked for');
is($postgres->psql("select request_state from pg_stat_cdc_verify where request = $cancelled"), 'cancelled', 'what was cancelled was not begun');
like($postgres->psql_error("call cdc_wait_for_verify($cancelled)"), qr/verification $cancelled was cancelled/, 'and waiting for it says so');

# a table that does not stream is skipped, with its state
$source->sql('alter table shop.k_date add column added int', "insert into shop.k_date (k, v) values ('2025-01-01', 1)");
$pipeline->wait_for_table_state('k_date', 'stopped');
like($pipeline->verify('k_date'), qr/^k_date: .*, skipped: The table's state is "stopped"/, 'a stopped table is skipped');
# one whose target is gone fails, the others go on
$postgres->psql('drop table shop.k_year');
my $found_now = $pipeline->verify('k_year', 'k_time');
like($found_now, qr/^k_year: .*, failed: target table does not exist/m, 'a table without a target fails');
like($found_now, qr/^k_time: 1 missing, 1 extra, 0 different, 0 unsettled, done/m, 'the table beside is compared');

# old requests go
$pipeline->verify_mode('count', 'hot_int') for 1 .. 12;
cmp_ok($postgres->psql('select count(distinct request) from cdc_bridge.verify_request'), '<=', 20, 'the newest 20 requests are kept');
$pipeline->stop->drop;
is($postgres->psql('select (select count(*) from cdc_bridge.verify_request) + (select count(*) from cdc_bridge.verify_table) + (select count(*) from cdc_bridge.verify_difference)'),
	0, 'dropping the pipeline removes its requests');

done_testing();

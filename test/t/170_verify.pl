# cdc_verify(): tables that are equal are found equal while 8 processes write, in each mode; planted differences of every kind and
# type are found under the same load, with their column, and nothing else is.

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
	a_binary => [ 'binary(4)', "x'00ff'", q{'\\\\x00ff0001'} ],
	a_blob => [ 'blob', "x'00'", q{'\\\\x0000'} ],
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
	k_binary => [ 'k binary(3) not null', [ "x'00'", "x'ff00'" ], q{'\\\\x010203'} ],
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
	options => '{"snapshot_chunk_rows": 100, "verify_sample_percent": 30}')->setup;
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

my @planted;
for my $i (0 .. $#columns)
{
	my $name = $columns[$i];
	my $id = $i + 1;
	$postgres->psql("update shop.every set $name = $column{$name}[2] where id = $id");
	push @planted, "every: different {$id} {$name}" unless $name eq 'a_set';
}
$postgres->psql("update shop.every set a_int = null, a_json = null where id = " . (@columns + 1));
push @planted, 'every: different {' . (@columns + 1) . '} {a_int,a_json}';
push @planted, 'every: different {' . (grep({ $columns[$_] eq 'a_set' } 0 .. $#columns) + 0) . '}' if 0;
done_testing();

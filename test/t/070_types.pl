# Every type with its everyday and its odd values: one table for each group, each row once before the start (snapshot) and once
# after it (stream). The mirror equals the source, and what came by the snapshot equals what came by the stream.
# cells: mariadb-15 mariadb-18 mysql-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $mysql = $source->is_mysql;

# group => [ columns, value lists ]. id is added; a row of NULLs comes by itself.
my %group = (
	integers => [
		'a tinyint, b tinyint unsigned, c smallint, d smallint unsigned, e mediumint, f mediumint unsigned, g int, h int unsigned, i bigint, j bigint unsigned, k tinyint(1), l int zerofill, m boolean',
		'-128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615, 1, 7, true',
		'127, 0, 32767, 0, 8388607, 0, 2147483647, 0, 9223372036854775807, 9223372036854775808, -128, 0, false',
		'0, 128, 0, 32768, 0, 8388608, 0, 2147483648, 0, 9223372036854775807, 127, 4294967295, 5', '-1, 127, -1, 1, -1, 1, -1, 1, -1, 1, 0, 1, 0',
	],
	decimals => [
		'a decimal(65,30), b decimal(30,30), c decimal(10,2), d decimal(5,0), e decimal(18,9) unsigned, f decimal(1,1), g decimal(65,0)',
		"99999999999999999999999999999999999.999999999999999999999999999999, 0.999999999999999999999999999999, -99999999.99, 99999, 999999999.999999999, 0.9, ${\ ('9' x 65)}",
		"-99999999999999999999999999999999999.999999999999999999999999999999, -0.000000000000000000000000000001, 0.01, -99999, 0, -0.9, -${\ ('9' x 65)}",
		'0, 0, -0.00, 0, 0.000000001, 0, 1000000000', '1000000000.000000001, 0.5, 100, 100, 1, 0.1, 999999999',
	],
	floats => [
		'a float, b double, c float unsigned, d double(10,3), e float(7,2)',
		'3.4028234e38, 1.7976931348623157e308, 1e-38, 1234567.891, 12345.67', '-3.4028234e38, -1.7976931348623157e308, 0, -0.001, -0.01',
		'1.17549435e-38, 2.2250738585072014e-308, 0.1, 0, 0', '0.1, 0.1, 16777217, 0.5, 0.5', '-0.0, -0.0, 1, 1, 1', '1e-45, 5e-324, 123456.789, 1, 1',
	],
	dates => [
		'a date, b datetime, c datetime(3), d datetime(6), e timestamp null, f timestamp(6) null, g year',
		q{'1000-01-01', '1000-01-01 00:00:00', '1000-01-01 00:00:00.001', '1000-01-01 00:00:00.000001', '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001', 1901},
		q{'9999-12-31', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.999999', 2155},
		q{'2024-02-29', '2026-03-29 02:30:00', '2026-10-25 02:30:00.5', '1969-12-31 23:59:59.999999', '2026-03-29 01:30:00', '2026-10-25 00:59:59.9', 0},
		q{'0001-01-01', '0001-01-01 12:00:00', '1582-10-10 00:00:00', '1899-12-31 23:59:59.5', '2001-09-09 01:46:40', '2001-09-09 01:46:40.1', 2000},
	],
	times => [
		'a time, b time(3), c time(6), d time(1)',
		q{'838:59:59', '838:59:58.999', '838:59:58.999999', '838:59:58.9'}, q{'-838:59:59', '-838:59:58.999', '-838:59:58.999999', '-838:59:58.9'},
		q{'00:00:00', '00:00:00.001', '-00:00:00.000001', '-00:00:00.1'}, q{'24:00:00', '-00:00:01', '12:34:56.789012', '100:00:00'}, q{'-01:00:00', '-01:00:00.5', '-23:59:59.999999', '23:59:59.9'},
	],
	texts => [
		'a char(10), b varchar(40), c tinytext, d text, e mediumtext, f longtext, g varchar(300) character set latin1, h char(5) character set ucs2, i varchar(20) character set utf16, j char(255), k varchar(20) collate utf8mb4_bin',
		q{'', '', '', '', '', '', '', '', '', '', ''},
		q{'pad  ', 'keep  ', 'tab\tnew\nline', 'quote'' "x"', 'back\\\\slash \\\\N', 'ü€😀', 'café £', 'ab', '😀', repeat('é', 255), 'CASE'},
		q{' lead', ' ', repeat('x', 255), repeat('ü', 30000), repeat('long ', 20000), repeat('y', 70000), repeat('ß', 300), 'ü', 'žluť', ' ', 'case'},
		q{'0123456789', repeat('😀', 40), '\\\\.', '{"a": 1}', 'NULL', '\\\\x00', 'Ÿ', '€', 'a', 'a', 'á'},
	],
	binaries => [
		'a binary(4), b varbinary(300), c tinyblob, d blob, e mediumblob, f longblob, g binary(16)',
		q{'', '', '', '', '', '', ''}, q{x'00ff', x'00', x'00ff00', repeat(x'00', 300), repeat(x'ff', 70000), x'5c', x'00000000000000000000000000000000'},
		q{x'ffffffff', repeat(x'ab', 300), repeat('b', 255), x'0a', x'0d0a', repeat(x'8081', 40000), x'0123456789abcdef0123456789abcd00'}, q{x'0000', x'2000', ' ', '  ', 'text', '', x'20'},
	],
	labels => [
		q{a enum('x', 'y', 'z'), b enum('a,b', 'it''s', 'ü', ' lead', ''), c set('x', 'y', 'z'), d set('ä', 'o''k', 'p p'), e enum('é', 'è') character set latin1},
		q{'x', 'a,b', '', '', 'é'}, q{'z', 'it''s', 'x,y,z', 'ä,o''k,p p', 'è'}, q{'y', 'ü', 'y', 'p p', 'é'}, q{'x', '', 'x,z', 'ä', 'è'}, q{0, ' lead', 0, 0, 0},
	],
	many_labels => [
		'a enum(' . join(', ', map { "'e$_'" } 1 .. 300) . '), b set(' . join(', ', map { "'s$_'" } 1 .. 64) . ')',
		q{'e1', 's1'}, q{'e300', 's64'}, q{'e256', 's1,s8,s9,s32,s33,s63,s64'}, q{'e255', ''},
	],
	bits => [
		'a bit(1), b bit(2), c bit(8), d bit(9), e bit(33), f bit(64)',
		q{b'0', b'0', b'0', b'0', b'0', b'0'}, q{b'1', b'11', b'11111111', b'111111111', 8589934591, 18446744073709551615}, q{b'1', b'10', b'10000000', b'100000000', 4294967296, 9223372036854775808},
	],
	json_values => [
		'a json',
		q{'null'}, q{'true'}, q{'0'}, q{'-1'}, q{'"text"'}, q{'""'}, q{'[]'}, q{'{}'}, q{'{"": 1}'}, q{'[1, 2.5, -0.125, 1e3, "x", null, true, [], {}]'},
		q{'{"b": 1, "a": {"c": [1, {"d": null}]}, "ü": "😀", "quote": "\\\\"", "back": "\\\\\\\\", "nl": "\\\\n", "u": "\\\\u00e9\\\\ud83d\\\\ude00"}'},
		q{'[9223372036854775807, -9223372036854775808, 18446744073709551615, 4294967296, -2147483649, 65536, 32768, -32769]'},
		q{'[1.7976931348623157e308, 5e-324, 0.1, 1e22, 123456789012345678]'}, q{concat('["', repeat('x', 70000), '"]')}, q{concat('{"k": [', repeat('1,', 40000), '2]}')},
		q{concat(repeat('[', 30), repeat(']', 30))},
		q{'{"a": 1, "aa": 2, "b": 3, "A": 4, "long key with spaces": 5}'},
	],
);
if ($mysql)
{
	push @{ $group{json_values} }, q{json_object('d', cast('2026-01-02' as date), 't', cast('-12:34:56.5' as time(3)), 'dt', cast('2026-01-02 03:04:05.678901' as datetime(6)), 'n', cast('12345678901234567890.123' as decimal(30,3)))},
	  q{concat(repeat('[', 90), repeat(']', 90))},
	  q{json_array(cast(-0.50 as decimal(5,2)), cast(0 as decimal(3,1)), true, cast(1 as unsigned))};
	$group{invisible} = [ 'a int, b int invisible default 5', [ 'a, b', '1, 2' ], [ 'a', '3' ] ];
}
else
{
	$group{maria} = [
		'a uuid, b inet6, c inet4, d int invisible default 5',
		[ 'a, b, c, d', q{'123e4567-e89b-12d3-a456-426655440000', '::1', '192.168.0.1', 1} ], [ 'a, b, c, d', q{'ffffffff-ffff-ffff-ffff-ffffffffff00', '2001:db8::ff00:42:8329', '0.0.0.0', 2} ],
		[ 'a, b, c', q{'00000000-0000-0000-0000-000000000000', '::', '255.255.255.0'} ],
	];
	$group{compressed} = [ 'a varchar(1000) compressed, b text compressed, c blob compressed', q{'', '', ''}, q{repeat('abc', 300), repeat('ü', 5000), repeat(x'00', 5000)}, q{'short', 'x', x'ff'} ];
}
# generated columns, defaults, and names that want quotes
$group{columns} = [ 'a int, b int generated always as (a + 1) stored, c int generated always as (a * 2) virtual, `order` varchar(10) default \'dflt\', `Mixed Case` int', [ 'a, `Mixed Case`', '1, 2' ], [ 'a, `order`', q{5, 'x'} ] ];

$source->sql('create database shop', q{set sql_mode = ''});
my $dbh = $source->dbh;

# Insert all rows of all groups, with ids from FROM on.
sub insert_rows
{
	my ($from) = @_;
	for my $name (sort keys %group)
	{
		my ($columns, @rows) = @{ $group{$name} };
		my $id = $from;
		for my $row (@rows)
		{
			my ($list, $values) = ref $row ? @$row : (undef, $row);
			$source->sql(defined $list ? "insert into shop.$name (id, $list) values ($id, $values)" : "insert into shop.$name values ($id, $values)");
			$id++;
		}
		$source->sql("insert into shop.$name (id) values ($id)");
	}
}

for my $name (sort keys %group)
{
	$source->sql("create table shop.$name (id int primary key, $group{$name}[0]) default charset utf8mb4");
}
insert_rows(1);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
for my $name (sort keys %group)
{
	is($pipeline->table_status($name, 'state'), 'streaming', "$name streams") or diag($pipeline->table_status($name, 'last_error'));
	$pipeline->is_same("$name: the snapshot equals the source", $name);
}

insert_rows(1001);
$pipeline->wait_for_catchup;
for my $name (sort keys %group)
{
	is($pipeline->table_status($name, 'state'), 'streaming', "$name still streams") or diag($pipeline->table_status($name, 'last_error'));
	$pipeline->is_same("$name: the stream equals the source", $name);
	# bytes equal, not only values: 1.0 and 1.00 in jsonb or numeric differ here
	is($postgres->psql("select coalesce(string_agg(copied.id::text, ','), '') from shop.$name copied join shop.$name streamed on streamed.id = copied.id + 1000 "
		. "where (to_jsonb(copied) - 'id')::text <> (to_jsonb(streamed) - 'id')::text"), '', "$name: what came by the stream reads as what came by the snapshot");
	is($postgres->psql("select count(*) from shop.$name copied join shop.$name streamed on streamed.id = copied.id + 1000"), scalar @{ $group{$name} }, "$name: all rows came both ways");
}

# each row becomes another one, and back: before-images find their rows
for my $name (sort keys %group)
{
	my $plain = $mysql ? "generation_expression = ''" : "is_generated = 'NEVER'";
	my ($columns) = $source->query_rows("select group_concat(concat('t.`', column_name, '` = u.`', column_name, '`')) from information_schema.columns "
		. "where table_schema = 'shop' and table_name = '$name' and column_name <> 'id' and $plain");
	my $assignments = $columns->[0];
	$source->sql("update shop.$name t join shop.$name u on u.id = t.id + 1 set $assignments where t.id > 1000", "delete from shop.$name where id = 1001 or id = 2");
}
$pipeline->wait_for_catchup;
$pipeline->is_same('after updates and deletes of every type');

# the types that the map promises
is($postgres->psql("select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute where attrelid = 'shop.integers'::regclass and attnum > 0"),
	'id integer, a smallint, b smallint, c smallint, d integer, e integer, f integer, g integer, h bigint, i bigint, j numeric(20,0), k smallint, l bigint, m smallint',
	'integers keep their width, unsigned ones take the next wider');

# Values that have no form in the target's type stop their table, in either phase, and never arrive as something else.
my %impossible = (
	zero_date => [ 'date', q{'0000-00-00'} ],
	zero_day => [ 'datetime(3)', q{'2026-05-00 12:00:00'} ],
	no_such_day => [ 'date', q{'2026-02-31'} ],
	zero_timestamp => [ 'timestamp null', q{'0000-00-00 00:00:00'} ],
	nul_in_text => [ 'varchar(10)', q{'a\0b'} ],
	nul_in_json => [ 'json', q{'"a\\\\u0000b"'} ],
);
$source->sql(q{set sql_mode = 'ALLOW_INVALID_DATES'});
$pipeline->stop->drop->drop_target;
$source->sql('drop database shop', 'create database shop', 'create table shop.good (id int primary key)', 'insert into shop.good values (1)');
for my $name (sort keys %impossible)
{
	my ($type, $value) = @{ $impossible{$name} };
	$source->sql("create table shop.${name}_$_ (id int primary key, v $type)", "insert into shop.${name}_$_ values (1, null)") for qw(copied streamed);
	$source->sql("insert into shop.${name}_copied values (2, $value)");
}
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
for my $name (sort keys %impossible)
{
	$source->sql("insert into shop.${name}_streamed values (2, $impossible{$name}[1])");
}
$source->sql('insert into shop.good values (2)');
for my $table (map { ("${_}_copied", "${_}_streamed") } sort keys %impossible)
{
	eval { $pipeline->wait_for_table_state($table, 'stopped', 30) } or diag($@);
	is($pipeline->table_status($table, 'state'), 'stopped', "$table: the table is stopped");
	like($pipeline->table_status($table, 'last_error_sqlstate'), qr/^22/, "$table: the error is one of data");
	is($postgres->psql("select count(*) from shop.$table where id = 2"), '0', "$table: nothing else arrived in its place");
}
$pipeline->wait_for_catchup;
$pipeline->is_same('the table beside goes on', 'good');

done_testing();

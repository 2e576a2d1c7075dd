package CdcBridge::Types;

# Every type of a source's column with its least, its greatest, its zero and its odd values, as SQL: what the matrices of
# tests are generated from.
#
#   for my $type (CdcBridge::Types::all($source)) { print "$type->{name}: $type->{sql}: @{ $type->{values} }\n"; }
#
# The session that writes them has an empty sql_mode.

use strict;
use warnings;

my @integers = map { my ($type, $bits) = @$_; _integer($type, $bits) } [ tinyint => 8 ], [ smallint => 16 ], [ mediumint => 24 ], [ int => 32 ], [ bigint => 64 ];

# Powers of two as text: Perl's integers end at 64 bits.
sub _integer
{
	my ($type, $bits) = @_;
	my %power = (8 => [ 127, 255 ], 16 => [ 32767, 65535 ], 24 => [ 8388607, 16777215 ], 32 => [ 2147483647, 4294967295 ], 64 => [ '9223372036854775807', '18446744073709551615' ]);
	my ($max, $unsigned_max) = @{ $power{$bits} };
	return ([ $type, $type, "-$max - 1", $max, 0, -1, 1, "-$max" ], [ "${type}_unsigned", "$type unsigned", 0, $unsigned_max, $max, "$max + cast(1 as unsigned)", "$unsigned_max - 1", 1 ]);
}

my $nines = sub { return '9' x $_[0]; };
my @common = (
	@integers,
	[ 'tinyint1', 'tinyint(1)', -128, 127, 0, 1, 2, -1 ],
	[ 'int_zerofill', 'int(7) zerofill', 0, 4294967295, 7 ],
	[ 'float', 'float', '-3.4028234e38', '3.4028234e38', 0, '-0.0', '1e-45', '1.17549435e-38', 0.1, 5.61, 16777217, 123456.789 ],
	[ 'float_unsigned', 'float unsigned', 0, '3.4028234e38', 0.1 ],
	[ 'float_7_4', 'float(7,4)', '-999.9999', '999.9999', 0, 0.0001, 5.61 ],
	[ 'double', 'double', '-1.7976931348623157e308', '1.7976931348623157e308', 0, '-0.0', '5e-324', '2.2250738585072014e-308', 0.1, '1e22', '123456789012345678' ],
	[ 'double_10_3', 'double(10,3)', '-9999999.999', '9999999.999', 0, 0.001 ],
	[ 'decimal', 'decimal(10,2)', '-99999999.99', '99999999.99', 0, '-0.00', '0.01', 100 ],
	[ 'decimal_65_30', 'decimal(65,30)', (map { "$_" . $nines->(35) . '.' . $nines->(30) } '-', ''), 0, '1e-30', '1000000000.000000001' ],
	[ 'decimal_65_0', 'decimal(65,0)', (map { "$_" . $nines->(65) } '-', ''), 0, 1000000000, 999999999 ],
	[ 'decimal_30_30', 'decimal(30,30)', (map { "${_}0." . $nines->(30) } '-', ''), 0, '-1e-30', 0.5 ],
	[ 'decimal_unsigned', 'decimal(18,9) unsigned', 0, '999999999.999999999', '0.000000001', 1 ],
	[ 'bit1', 'bit(1)', 0, 1 ],
	[ 'bit9', 'bit(9)', 0, 511, 256, 1 ],
	[ 'bit33', 'bit(33)', 0, 8589934591, 4294967296 ],
	[ 'bit64', 'bit(64)', 0, '18446744073709551615', '9223372036854775808', 1 ],
	[ 'year', 'year', 1901, 2155, 0, 2000, "'69'", "'70'" ],
	[ 'date', 'date', map { "'$_'" } '0000-01-01', '9999-12-31', '1000-01-01', '0001-01-01', '1970-01-01', '1969-12-31', '2024-02-29', '1582-10-10' ],
	[ 'time', 'time', map { "'$_'" } '-838:59:59', '838:59:59', '00:00:00', '-00:00:01', '24:00:00', '23:59:59', '-01:00:00' ],
	[ 'time_1', 'time(1)', map { "'$_'" } '-838:59:58.9', '838:59:58.9', '00:00:00', '-00:00:00.1', '100:00:00.5' ],
	[ 'time_3', 'time(3)', map { "'$_'" } '-838:59:58.999', '838:59:58.999', '00:00:00', '-00:00:00.001', '-01:00:00.5' ],
	[ 'time_6', 'time(6)', map { "'$_'" } '-838:59:58.999999', '838:59:58.999999', '00:00:00', '-00:00:00.000001', '12:34:56.789012', '-23:59:59.999999' ],
	[ 'datetime', 'datetime', map { "'$_'" } '0000-01-01 00:00:00', '9999-12-31 23:59:59', '1970-01-01 00:00:00', '2026-03-29 02:30:00', '1969-12-31 23:59:59' ],
	[ 'datetime_3', 'datetime(3)', map { "'$_'" } '0001-01-01 00:00:00.001', '9999-12-31 23:59:59.999', '1970-01-01 00:00:00', '2026-10-25 02:30:00.5' ],
	[ 'datetime_6', 'datetime(6)', map { "'$_'" } '0001-01-01 00:00:00.000001', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:00', '1969-12-31 23:59:59.999999', '1582-10-10 12:00:00.5' ],
	[ 'timestamp', 'timestamp null', map { "'$_'" } '1970-01-01 00:00:01', '2038-01-19 03:14:07', '2001-09-09 01:46:40', '2026-03-29 01:30:00' ],
	[ 'timestamp_2', 'timestamp(2) null', map { "'$_'" } '1970-01-01 00:00:01.01', '2038-01-19 03:14:07.99', '2001-09-09 01:46:40' ],
	[ 'timestamp_6', 'timestamp(6) null', map { "'$_'" } '1970-01-01 00:00:01.000001', '2038-01-19 03:14:07.999999', '2026-10-25 00:59:59.9', '2026-10-25 01:00:00' ],
	[ 'char', 'char(10)', q{''}, q{'0123456789'}, q{'pad  '}, q{' lead'}, q{'ü€😀'}, q{'\\\\.'}, q{'\\n'} ],
	[ 'char255', 'char(255)', q{''}, q{repeat('é', 255)}, q{repeat('😀', 255)} ],
	[ 'varchar', 'varchar(300)', q{''}, q{repeat('😀', 300)}, q{' '}, q{'keep  '}, q{'quote'' "x"'}, q{'back\\\\slash \\\\N'}, q{'NULL'}, q{'tab\\tnew\\nline\\r'}, q{'\\\\x00'} ],
	[ 'varchar_latin1', 'varchar(300) character set latin1', q{''}, q{repeat('ÿ', 300)}, q{'café €Ÿ'} ],
	[ 'char_ucs2', 'char(200) character set ucs2', q{''}, q{repeat('ü', 200)}, q{'ab'}, q{'中 '} ],
	[ 'varchar_utf16', 'varchar(20) character set utf16', q{''}, q{repeat('😀', 20)}, q{'žluť'} ],
	[ 'varchar_bin', 'varchar(20) collate utf8mb4_bin', q{''}, q{'CASE'}, q{'case'}, q{'á'} ],
	[ 'tinytext', 'tinytext', q{''}, q{repeat('x', 255)}, q{'ü'} ],
	[ 'text', 'text', q{''}, q{repeat('x', 65535)}, q{repeat('ü', 30000)}, q{'{"a": 1}'} ],
	[ 'mediumtext', 'mediumtext', q{''}, q{repeat('long ', 20000)}, q{'x'} ],
	[ 'longtext', 'longtext', q{''}, q{repeat('y', 70000)}, q{'NULL'} ],
	[ 'text_latin1', 'text character set latin1', q{''}, q{repeat('ß', 65535)}, q{'€'} ],
	[ 'binary', 'binary(4)', q{x'00000000'}, q{x'ffffffff'}, q{''}, q{x'00ff'}, q{x'2000'} ],
	[ 'binary16', 'binary(16)', q{x'00'}, q{x'ffffffffffffffffffffffffffffffff'}, q{x'0123456789abcdef0123456789abcd00'}, q{x'20'} ],
	[ 'varbinary', 'varbinary(300)', q{''}, q{repeat(x'ff', 300)}, q{x'00'}, q{x'0000'}, q{'  '}, q{x'5c'} ],
	[ 'tinyblob', 'tinyblob', q{''}, q{repeat('b', 255)}, q{x'00ff00'} ],
	[ 'blob', 'blob', q{''}, q{repeat(x'00', 65535)}, q{x'0a'}, q{x'5c'} ],
	[ 'mediumblob', 'mediumblob', q{''}, q{repeat(x'ff', 70000)}, q{x'0d0a'} ],
	[ 'longblob', 'longblob', q{''}, q{repeat(x'8081', 40000)}, q{'text'} ],
	[ 'enum', q{enum('x', 'it''s', 'a,b', ' lead', 'é', '')}, 1, 6, 0, 2, 3, 4, 5 ],
	[ 'enum300', 'enum(' . join(', ', map "'e$_'", 1 .. 300) . ')', 1, 300, 0, 255, 256 ],
	[ 'enum_latin1', q{enum('é', 'è') character set latin1}, 1, 2, 0 ],
	[ 'set', q{set('x', 'é', 'o''k', 'p p')}, 0, 15, 1, 8, 5 ],
	[ 'set64', 'set(' . join(', ', map "'s$_'", 1 .. 64) . ')', 0, '18446744073709551615', '9223372036854775808', 1 ],
	[ 'json', 'json', q{'null'}, q{'true'}, q{'0'}, q{'-1'}, q{'"text"'}, q{'""'}, q{'[]'}, q{'{}'}, q{'{"": 1}'}, q{'[1, 2.5, -0.125, 1e3, "x", null, true, [], {}]'},
		q{'{"b": 1, "a": {"c": [1, {"d": null}]}, "ü": "😀", "quote": "\\\\"", "back": "\\\\\\\\", "nl": "\\\\n", "u": "\\\\u00e9\\\\ud83d\\\\ude00"}'},
		q{'[9223372036854775807, -9223372036854775808, 18446744073709551615, 4294967296, -2147483649, 65536, 32768, -32769]'}, q{'[1.7976931348623157e308, 5e-324, 0.1, 1e22, 123456789012345678]'},
		q{concat('["', repeat('x', 70000), '"]')}, q{concat('{"k": [', repeat('1,', 40000), '2]}')}, q{concat(repeat('[', 30), repeat(']', 30))}, q{'{"a": 1, "aa": 2, "b": 3, "A": 4, "long key with spaces": 5}'} ],
	[ 'geometry', 'geometry', q{st_geomfromtext('POINT(0 0)')}, q{st_geomfromtext('POINT(-1.7e308 5e-324)')}, q{st_geomfromtext('GEOMETRYCOLLECTION EMPTY')}, q{st_geomfromtext('LINESTRING(0 0, 1 1)', 4326)}, q{st_geomfromtext('POINT(1 2)', 3857)} ],
	[ 'point', 'point', q{st_geomfromtext('POINT(0 0)')}, q{st_geomfromtext('POINT(1 -2)', 4326)} ],
	[ 'polygon', 'polygon', q{st_geomfromtext('POLYGON((0 0, 10 0, 10 10, 0 0))')} ],
	[ 'invisible', 'int invisible', 0, 5, -1 ],
);

my @mysql = (
	[ 'json_opaque', 'json', q{json_array(cast('2026-01-02' as date), cast('-12:34:56.5' as time(3)), cast('2026-01-02 03:04:05.678901' as datetime(6)), cast('12345678901234567890.123' as decimal(30,3)))},
		q{concat(repeat('[', 90), repeat(']', 90))}, q{json_array(cast(-0.50 as decimal(5,2)), cast(0 as decimal(3,1)), true, cast(1 as unsigned))} ],
	[ 'vector', 'vector(3)', q{to_vector('[0, -0.0, 0]')}, q{to_vector('[3.4028234e38, -3.4028234e38, 1e-30]')}, q{to_vector('[0.1, 5.61, 16777216]')} ],
	[ 'varchar_gb18030', 'varchar(20) character set gb18030', q{''}, q{repeat('😀', 20)}, q{'中€'} ],
);

my @mariadb = (
	[ 'uuid', 'uuid', q{'00000000-0000-0000-0000-000000000000'}, q{'ffffffff-ffff-ffff-ffff-ffffffffffff'}, q{'123e4567-e89b-12d3-a456-426655440000'}, q{'ffffffff-ffff-7fff-bfff-ffffffffff00'} ],
	[ 'inet4', 'inet4', q{'0.0.0.0'}, q{'255.255.255.255'}, q{'10.0.0.0'}, q{'127.0.0.1'} ],
	[ 'inet6', 'inet6', q{'::'}, q{'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'}, q{'::1'}, q{'::ffff:192.168.0.1'}, q{'2001:db8::ff00:42:8329'}, q{'fe80::'} ],
	[ 'varchar_compressed', 'varchar(1000) compressed', q{''}, q{repeat('abc', 300)}, q{'short'} ],
	[ 'text_compressed', 'text compressed', q{''}, q{repeat('ü', 30000)}, q{'x'} ],
	[ 'blob_compressed', 'longblob compressed', q{''}, q{repeat(x'00', 70000)}, q{x'ff'} ],
	[ 'decimal_38_38', 'decimal(38,38)', (map { "${_}0." . $nines->(38) } '-', ''), 0, '1e-38' ],
);

# MariaDB 11.7 and 11.5
my @mariadb_vector = ([ 'vector', 'vector(3)', q{vec_fromtext('[0, -0.0, 0]')}, q{vec_fromtext('[3.4028234e38, -3.4028234e38, 1e-30]')}, q{vec_fromtext('[0.1, 5.61, 16777216]')}, q{x'000000000000000000000020'} ]);
my @mariadb_2106 = (
	[ 'timestamp_2106', 'timestamp null', map { "'$_'" } '2038-01-19 03:14:08', '2106-02-07 06:28:15', '2038-01-19 03:14:07', '2100-02-28 23:59:59' ],
	[ 'timestamp_2106_6', 'timestamp(6) null', map { "'$_'" } '2038-01-19 03:14:08.000001', '2106-02-07 06:28:15.999999', '2070-10-25 01:00:00.5' ],
);

# References to { name, sql, values }.
sub all
{
	my ($source) = @_;
	my @list = (@common, $source->is_mysql ? @mysql : @mariadb);
	push @list, @mariadb_2106 if $source->is_mariadb && $source->version >= 110500;
	push @list, @mariadb_vector if $source->is_mariadb && $source->has_vectors;
	return map { my ($name, $sql, @values) = @$_; { name => $name, sql => $sql, values => \@values } } @list;
}

1;

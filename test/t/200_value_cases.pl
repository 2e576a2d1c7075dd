# The cases of types that users met (M1 to M42): every table holds its rows from the snapshot, from inserts, updates and deletes in
# the stream, and from what happened while this server was down; each time the mirror equals the source. The source's zone has a
# summer time, its clients write in another one.
# also: mariadb118-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

# one with a summer time, told by the system: the servers' own tables of zones are empty
my $source = do { local $ENV{TZ} = 'Europe/Berlin'; CdcBridge::Source->new; };
my $postgres = CdcBridge::Postgres->new;
my $mysql = $source->is_mysql;

# The extremes of a column of each kind are in 201; here is what went wrong for somebody.
# table => [ 'title, with the number of its case', 'columns beside id', 'values of a row' or [ 'columns', 'values' ], ... ]
my %case = (
	m1 => [ 'M1: unsigned integers', 'a tinyint unsigned, b smallint unsigned, c mediumint unsigned, d int unsigned, e bigint unsigned',
		'255, 65535, 8888607, 4294967295, 18446744073709551615', '128, 32768, 8388608, 2147483648, 9223372036854775808' ],
	m3 => [ 'M3: synonyms of types', 'a boolean, b real, c nchar(4), d nvarchar(4), e integer unsigned, f serial, g long, h long varchar, i dec(5,2), j fixed(5,2), k double precision, l character varying(4), '
		  . 'm numeric(5), n int1, o int8, p middleint, q bool, r character(3), s national varchar(3), t long varbinary, u char byte, v float(30)',
		[ 'a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v', q{true, 1.5, 'ä', 'ö', 4294967295, 'long', 'longer', 1.25, 2.5, 3.5, 'abcd', 12345, -128, -9, 8388607, false, 'x', 'ß', 'bytes', 'b', 0.1} ] ],
	m4 => [ 'M4: ZEROFILL alone means unsigned', 'a int zerofill, b bigint zerofill, c decimal(8,2) zerofill, d tinyint(1) zerofill, e smallint(3) zerofill', '4294967295, 18446744073709551615, 12.5, 255, 65535', '0, 0, 0, 0, 0' ],
	m5 => [ 'M5: TINYINT(1) is a number', 'a tinyint(1), b boolean', '-1, 2', '127, -128', '0, 1' ],
	m8 => [ 'M8: zero dates as defaults', q{a datetime(6) default '0000-00-00 00:00:00.000000', b date not null default '0000-00-00', c timestamp(3) not null default '0000-00-00 00:00:00.000', d datetime default 0, n int},
		[ 'a, b, c, d', q{'2026-01-01 00:00:00.1', '2026-01-01', '2026-01-01 12:00:00.25', '2026-01-01'} ] ],
	m9 => [ 'M9: negative and long TIME', 'a time, b time(2), c time(6)', q{'-00:00:01', '-00:00:00.25', '-00:00:00.250000'}, q{'-838:59:59', '-838:59:59', '-838:59:59'}, q{'838:59:59', '838:59:59.00', '838:59:59.000000'}, q{'-24:00:00', '-00:59:59.99', '-00:00:00.000001'},
		q{'34:00:00', '-100:00:00.01', '-101:01:01.010101'} ],
	m11 => [ 'M11: TIMESTAMP in the repeated hour and other zones', 'a timestamp null, b timestamp(6) null, c datetime', (map { "from_unixtime($_), from_unixtime($_.654321), from_unixtime($_)" } 1792886399, 1792886400, 1792889999, 1792890000, 1792893600, 1774746000, 1774745999, 1, 2147483647) ],
	m12 => [ 'M12: old dates', 'a date, b datetime, c datetime(6)', q{'1969-12-31', '1969-12-31 23:59:59', '1969-12-31 23:59:59.999999'}, q{'0001-01-01', '0001-01-01 00:00:00', '0001-01-01 00:00:00.000001'}, q{'0000-01-01', '0000-01-01 00:00:00', '0000-12-31 23:59:59.5'},
		q{'0000-02-28', '0000-03-01 12:00:00', '1582-10-10 00:00:00'}, q{'1900-02-28', '1582-10-15 00:00:00', '1883-11-18 12:03:58'} ],
	m13 => [ 'M13: digits of the fraction', join(', ', (map { "d$_ datetime($_)" } 0 .. 6), (map { "s$_ timestamp($_) null default null" } 0 .. 6), (map { "t$_ time($_)" } 0 .. 6), 'n timestamp(3) not null default current_timestamp(3) on update current_timestamp(3)'),
		[ join(', ', map { my $t = $_; map { "$t$_" } 0 .. 6 } qw(d s t)), join(', ', map { my $t = $_; ("'$t.987654'") x 7 } '2026-01-02 03:04:05', '2026-01-02 03:04:05', '03:04:05') ],
		[ join(', ', map { my $t = $_; map { "$t$_" } 0 .. 6 } qw(d s t)), join(', ', map { my $t = $_; ("'$t.000001'") x 7 } '2026-12-31 23:59:59', '2026-12-31 23:59:59', '-03:04:05') ] ],
	m14 => [ 'M14: YEAR', 'a year, b year(4), c year default 0', q{70, '69', 0}, q{69, '70', '0'}, q{1901, 2155, '2000'}, q{0, '0', '00'}, q{99, 1, 1} ],
	m15 => [ 'M15: BIT, with its defaults', q{a bit, b bit(10) default b'1010', c bit(64) default b'1111', d bit(1) default b'1', e bit(5) not null default 0b00000, f bit(33)}, [ 'a', q{b'1'} ], [ 'b, c, d, f', q{0, 0, 0, 0} ],
		[ 'a, b, c, d, e, f', q{b'0', b'1111111111', 18446744073709551615, b'0', b'10101', 4294967297} ] ],
	m18 => [ 'M18: labels with commas, quotes, backslashes, parentheses, blanks', q{a enum('a,b', 'it''s', 'back\\\\slash', '(paren)', 'trail ', 'é', '"dq"', 'new\nline', 'tab\t', '%_', '\\\\''', 'unsigned', 'ÜBER') character set utf8mb4, }
		  . q{b enum('x', 'ж', 'я') character set cp1251, c enum(x'696e74726f', 'plain'), d set('it''s', 'back\\\\slash', '(p)', 'é', ' lead', '"q"'), e set('ж', 'x') character set cp1251, f enum('''', '\\\\', ')', ''',''')},
		q{1, 1, 1, 1, 1, 1}, q{2, 2, 2, 2, 2, 2}, q{3, 3, 1, 63, 3, 3}, q{4, 1, 2, 5, 0, 4}, (map { "$_, null, null, $_, null, null" } 5 .. 13) ],
	m20 => [ 'M20: a SET of 64', 'a set(' . join(', ', map { "'s$_'" } 1 .. 64) . '), b set(' . join(', ', map { "'t$_'" } 1 .. 17) . ')', q{'s1,s64', 't17,t1'}, '18446744073709551615, 131071', '9223372036854775808, 65536', '0, 0' ],
	m28 => [ 'M28: DECIMAL at its ends', 'a decimal(65,30), b decimal(30,30), c decimal(65,0), d decimal(10,2), e decimal(1,0), f decimal(38,30), g decimal(20,10) unsigned',
		(map { my $s = $_; "${s}${\ ('9' x 35)}.${\ ('9' x 30)}, ${s}0.${\ ('9' x 30)}, ${s}${\ ('9' x 65)}, ${s}0.01, ${s}9, ${s}0." . '9' x 30 . ', 0.0000000001' } '', '-'),
		'-0.00, -0.0, -0, -0.00, -0, -0.0, 0', '1e-30, 1e-30, 1e64, 1e7, 1, 1e-30, 9999999999.9999999999' ],
	m29 => [ 'M29: FLOAT is the float that is stored', 'a float, b float(7,4), c float(24), d float(25), e double, f double(30,20), g float unsigned',
		'5.61, 5.61, 5.61, 5.61, 5.61, 5.61, 5.61', '16777216.5, 999.9999, 16777217, 16777217.5, 0.1, 0.1, 123456.789', '1e-45, 0.0001, 1.17549435e-38, 1e-300, 5e-324, 1e-20, 3.4028234e38', '-0.0, -0.0, -0.0, -0.0, -0.0, -0.0, 0' ],
	m32 => [ 'M32: only the character set binary makes bytes', 'a varchar(20) character set utf8mb4 collate utf8mb4_bin, b varbinary(20), c char(5) character set latin1 collate latin1_bin, d text character set binary, e char(4) character set binary, f varchar(9) binary, g blob, h char(6) character set ascii binary',
		q{'Straße 😀', 'Straße', 'é', 'é', 'é', 'É', 'é', 'ascii'}, q{'a', x'ff00fe', 'A', x'00ff', x'ff', 'a ', x'80', 'A '}, q{'a ', '', 'a ', '', '', ' ', '', ''} ],
	m36 => [ 'M36: generated columns', q{a int, b int as (a * 2) virtual, c int as (a + 1) stored, d varchar(40) as (concat('v', a)) stored, e decimal(12,3) as (a / 8) virtual, f date as (date_add('2026-01-01', interval a day)) stored, `order` varchar(10) default 'dflt', `Mixed Case` int, key (c)},
		[ 'a', 1 ], [ 'a, `order`', q{-7, 'x'} ], [ 'a, `Mixed Case`', '1000000, 2' ] ],
	m38 => [ 'M38: INVISIBLE columns', q{a int, b int invisible default 5, c varchar(9) not null default 'x' invisible}, [ 'a, b, c', q{1, 2, 'y'} ], [ 'a', '3' ] ],
);

# every text in the column's own character set; the labels of ENUM and SET too
my %text = (
	latin1 => 'é€‰ŒŸ', latin2 => 'łžŐ', latin5 => 'ğİş', latin7 => 'āčņ', cp1250 => 'ł€ž', cp1251 => 'Жя€№', cp1256 => 'عپ€', cp1257 => 'āč€', cp850 => 'é±', cp852 => 'łž', cp866 => 'Жя╬', koi8r => 'Жя', koi8u => 'Жїґ',
	greek => 'Ωλ', hebrew => 'שלום', tis620 => 'ไทย', armscii8 => 'Բբ', geostd8 => 'აბ', macce => 'łž', macroman => 'é€π', keybcs2 => 'čž', dec8 => 'éÖ', hp8 => 'éÖ', swe7 => 'ÅÄÖ', ascii => 'abc',
	gbk => '中文字', gb2312 => '中文', big5 => '中文字', sjis => '日本ｱ', cp932 => '日本①ｱ', ujis => '日本ｱ丂', eucjpms => '日本①', euckr => '한국', ucs2 => 'žΩ中', utf16 => '😀中', utf16le => '😀中', utf32 => '😀中', utf8mb3 => '中é', utf8mb4 => '😀é',
	$mysql ? (gb18030 => '中😀€') : ());
my @charsets = grep { exists $text{$_} } map { $_->[0] } $source->query_rows('select character_set_name from information_schema.character_sets order by 1');
for my $set (@charsets)
{
	my $value = $text{$set};
	$case{"m30_$set"} = [ "M30: character set $set", "a varchar(20) character set $set, b char(10) character set $set, c text character set $set, d enum('x', '$value') character set $set, e set('$value', 'y') character set $set",
		"'$value', '$value', repeat('$value', 300), '$value', '$value,y'", "'a', 'a ', '', 'x', 'y'", "'~\\\\ \"''', ' $value', '\n', 2, 3" ];
}

$case{m30_wide} = [ 'M30: characters beyond U+FFFF in labels and defaults', q{a enum('a😀b', '?', '𝄞') character set utf8mb4, b set('😀', 'x') character set utf16, c varchar(20) character set utf8mb4 default 'a😀b', d enum('😀') character set utf8mb4 default '😀'},
	[ 'a, b', '1, 1' ], [ 'a, b', '2, 2' ], [ 'a, b', '3, 3' ] ];
my @points = map { "st_geomfromtext('$_')" } 'POINT(1.5 -2)', 'LINESTRING(0 0, 1 1, 2 0)', 'POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 4 2, 4 4, 2 2))', 'MULTIPOINT(1 1, 2 2)', 'MULTILINESTRING((0 0, 1 1), (2 2, 3 3))',
  'MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))', 'GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1 1))', 'GEOMETRYCOLLECTION EMPTY', 'POINT(1e300 -1e-300)';
$case{m27} = [ 'M27: geometries, with their SRID', 'g geometry', @points, "st_geomfromtext('POINT(48.2 16.3)', 4326)", "st_geomfromtext('POLYGON((1 2, 3 4, 5 1, 1 2))', 4326)", "st_geomfromtext('POINT(10 20)', 3857)", "st_geomfromtext('GEOMETRYCOLLECTION(POINT(1 2))', 4326)" ];
$case{m27_types} = [ 'M27: each type of geometry', 'a point, b linestring, c polygon, d multipoint, e multilinestring, f multipolygon, g geometrycollection', join(', ', @points[ 0 .. 6 ]) ];

if ($mysql)
{
	my $opaque = q{json_object('d', d, 'dt', dt, 'ts', ts, 'ti', ti, 'dec', dec1, 'bit', b, 'bin', bin, 'blob', bl, 'enum', e, 'set', s, 'year', y, 'f', f, 'g', g)};
	$case{m21} = [ 'M21: JSON, as jsonb, json and text', 'a json, as_json json, as_text json', map { "$_, $_, $_" }
		  q{'{"b":1,"a":[1,2.50,1e3,1E-7,-0.0,100.0],"":{},"c":"é\\\\u0001x\\\\n\\\\t\\\\\\\\"}'}, 'json_object("t", cast("12:34:56" as time), "d", cast("2026-01-02 03:04:05" as datetime), "n", cast(1.50 as decimal(5,3)), "b", cast("bytes" as binary))', 'json_array(1.0, 1, -1, true, null, 1e15, 1e16, 123456789.125, 0.1, 1.7976931348623157e308)',
		  q{'"\\\\u007f\\\\u001f\\\\u2028/"'}, q{json_quote('a')}, 'json_array(18446744073709551615, -9223372036854775808, 9223372036854775808)' ];
	$case{m23} = [ 'M23: JSON made of columns', "d date, dt datetime(3), ts timestamp(6) null, ti time(2), dec1 decimal(65,30), b bit(9), bin binary(3), bl blob, e enum('x', 'é'), s set('x', 'y'), y year, f float, g point, j json as ($opaque) stored, k json",
		[ 'd, dt, ts, ti, dec1, b, bin, bl, e, s, y, f, g, k', qq{'2026-01-02', '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.000001', '-12:34:56.78', -12345678901234567890.123456789, b'101010101', x'00ff', repeat(x'ab', 100), 'é', 'x,y', 2026, 5.61, point(1, 2), null} ],
		[ 'd, dt, ts, ti, dec1, b, bin, bl, e, s, y, f, g', q{'0001-01-01', '9999-12-31 23:59:59.999', '1970-01-02', '838:59:59', 0, 0, '', '', 1, 0, 1901, -0.0, st_geomfromtext('POINT(1 2)', 4326)} ] ];
	$case{m37} = [ 'M37: hidden columns of functional and multi-valued indexes', q{a int, b varchar(20), j json, key f1 ((a + 1)), key f2 ((lower(b))), key m1 ((cast(j->'$.ids' as unsigned array))), key m2 ((cast(j->'$.names' as char(10) array))), key u1 ((a * 3))},
		[ 'a, b, j', q{1, 'X', '{"ids": [1, 2, 3], "names": ["a", "b"]}'} ], [ 'a, b, j', q{2, 'Y', '{"ids": [], "names": []}'} ], [ 'a, b, j', q{3, null, null} ] ];
	$case{m39} = [ 'M39: VECTOR', 'a vector(3), b vector', q{to_vector('[1, 2.5, -3e-5]'), to_vector('[1]')}, q{to_vector('[0, -0.0, 3.4028234e38]'), to_vector('[1, 2, 3, 4]')} ];
}
else
{
	$case{m26} = [ 'M26: JSON of MariaDB', 'a json, b longtext, c json default (json_object())', [ 'a, b', q('{"b": 1, "a": [1, 2.50, 1e3, true]}', '{not json') ], [ 'a, b, c', q{'[]', '[]', '[ 1 ,2 ]'} ], [ 'a, b, c', q{'"\\\\u00e9é"', '', 'null'} ] ];
	$case{m28_maria} = [ 'M28: DECIMAL with 38 decimals', 'a decimal(38,38), b decimal(65,38)', map { "${_}0.${\ ('9' x 38)}, ${_}${\ ('9' x 27)}.${\ ('9' x 38)}" } '', '-' ];
	$case{m40} = [ 'M40: UUID, INET4, INET6 and COMPRESSED', 'a uuid, b inet6, c inet4, d varchar(2000) compressed, e text compressed, f blob compressed, g varchar(300) compressed character set latin1, h mediumtext compressed',
		q{'123e4567-e89b-12d3-a456-426655440000', '2001:db8::ff00:42:8329', '10.0.0.1', repeat('abc', 400), repeat('ü', 5000), repeat(x'00', 5000), repeat('é', 200), repeat('x', 100000)},
		q{'ffffffff-ffff-7fff-bfff-ffffffffff00', '::ffff:192.168.0.1', '0.0.0.0', 'x', '', '', '', 'short'}, q{'00000000-0000-0000-0000-000000000000', '::', '255.255.255.255', '', 'x', x'ff', 'é', ''},
		q{'00000000-0000-1000-8000-000000000001', '::1.2.3.4', '127.0.0.1', null, null, null, null, null}, q{uuid(), 'fe80::1', '1.0.0.0', ' ', ' ', ' ', ' ', ' '} ];
}
my @names = sort keys %case;

my $writer = $source->connect;
sub write_sql { for my $sql (@_) { eval { $writer->do($sql); 1; } or die "$sql\n$@"; } }
write_sql('create database shop', q{set sql_mode = ''}, q{set time_zone = '-08:00'});

sub insert_rows
{
	my ($from) = @_;
	for my $name (@names)
	{
		my ($title, $columns, @rows) = @{ $case{$name} };
		my $id = $from;
		for my $row (@rows)
		{
			my ($list, $values) = ref $row ? @$row : (undef, $row);
			write_sql(defined $list ? "insert into shop.$name (id, $list) values ($id, $values)" : "insert into shop.$name values ($id, $values)");
			$id++;
		}
		write_sql("insert into shop.$name (id) values ($id)") unless $name =~ /^(m3|m8)$/;
	}
}

# Give each row the values of the next one, and delete two.
my %assignments;
sub change_rows
{
	my ($from) = @_;
	for my $name (@names)
	{
		$assignments{$name} //= do {
			my $plain = $mysql ? "generation_expression = ''" : "is_generated = 'NEVER'";
			join(', ', map { "t.`$_->[0]` = u.`$_->[0]`" } $source->query_rows("select column_name from information_schema.columns where table_schema = 'shop' and table_name = '$name' and column_name <> 'id' and column_key <> 'UNI' and $plain"));
		};
		write_sql("update shop.$name t join shop.$name u on u.id = t.id + 1 set $assignments{$name} where t.id >= $from", "delete from shop.$name where id = $from or id = 2");
	}
}

for my $name (@names)
{
	write_sql("create table shop.$name (id int primary key, $case{$name}[1]) default charset utf8mb4");
}
write_sql('alter table shop.m3 ' . join(', ', map { "add x$_ " . (qw(boolean real nchar(4) nvarchar(4)), 'integer unsigned', 'long', 'long varchar', 'dec(5,2)', 'fixed(5,2)', 'double precision', 'character varying(4)', 'numeric(5)', 'int8', 'bool')[$_] } 0 .. 13));
insert_rows(1);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"column_types": {"shop.m21.as_json": "json", "shop.m21.as_text": "text"}, "zero_date": "null"}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
sub all_same
{
	my ($when) = @_;
	$pipeline->are_same($when, { map { $_ => $case{$_}[0] } @names }, @names);
	is($pipeline->status('tables_stopped'), 0, "no table is stopped $when");
	return unless $mysql;
	# where the target keeps the text, it is the server's, byte by byte
	my %text = map { $_->[0] => $_->[1] // '' } $source->query_rows('select id, hex(cast(as_text as char)) from shop.m21');
	my %here = map { split(/\|/, $_, -1) } split(/\n/, $postgres->psql(q{select id, upper(encode(convert_to(coalesce(as_text, ''), 'UTF8'), 'hex')) from shop.m21 where as_json::text is not distinct from as_text}));
	is_deeply(\%here, \%text, "M21: JSON as text and as json: $when");
}
all_same('after the snapshot');
insert_rows(1001);
change_rows(1001);
insert_rows(2001);
$pipeline->wait_for_catchup;
all_same('after streaming');
$postgres->stop;
insert_rows(3001);
change_rows(2001);
$postgres->start;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
all_same('after a restart');

is($postgres->psql("select count(*) from pg_attrdef where adrelid = 'shop.m30_wide'::regclass"), '0', 'M30: a default that information_schema cannot show is left out');

# M42: such a key may change to what it is equal to already, in one statement, and in the same batch as others
write_sql('create table shop.ci (k varchar(20) collate utf8mb4_general_ci primary key, v int) default charset utf8mb4', map { "insert into shop.ci values ('$_', 1)" } qw(a b c d e f g));
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.ci')});
$pipeline->wait_for_table_state('ci', 'streaming');
write_sql('begin', "update shop.ci set k = 'A' where k = 'a'", "update shop.ci set k = 'B', v = 2 where k = 'B'", "delete from shop.ci where k = 'C'", "insert into shop.ci values ('C', 3)", "replace into shop.ci values ('D', 4)",
	"update shop.ci set k = 'É' where k = 'e'", "insert into shop.ci values ('F', 5) on duplicate key update k = 'F', v = 6", 'commit', "update shop.ci set v = 7 where k = 'a'", "delete from shop.ci where k = 'G'");
$pipeline->wait_for_catchup;
$pipeline->is_same('M42: keys that change only their case or accent', 'ci');
is($postgres->psql(q{select string_agg(k, ',' order by k collate "C") from shop.ci}), 'A,B,C,D,F,É', 'M42: the mirror has the spelling that the source has');

# M19: the list of an ENUM changes while its events are unread: they read as they were written
write_sql(q{create table shop.labels (id int primary key, e enum('a', 'b'), s set('x', 'y'))}, q{insert into shop.labels values (1, 'a', 'x')});
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.labels')});
$pipeline->wait_for_table_state('labels', 'streaming')->stop;
write_sql(q{insert into shop.labels values (2, 'b', 'y')}, q{alter table shop.labels modify e enum('z', 'a', 'b'), modify s set('w', 'x', 'y')}, q{insert into shop.labels values (3, 'z', 'w')}, q{update shop.labels set s = 'w,y' where id = 2});
$pipeline->start->wait_for_catchup;
is($postgres->psql(q{select string_agg(e || s, ',' order by id) from shop.labels}), 'ax,bw,y,zw', 'M19: events from before and after the change have their labels');
$pipeline->is_same('M19: as the source', 'labels');

# M30: a first label or a default that cannot be read is not made up where a row image leaves it out
write_sql(q{create table shop.unread (id int primary key, e enum('a😀b', 'x') character set utf8mb4 not null)}, q{insert into shop.unread values (1, 'x')});
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.unread')});
$pipeline->wait_for_table_state('unread', 'streaming');
write_sql(q{set session binlog_row_image = 'MINIMAL'}, 'insert into shop.unread (id) values (2)', q{set session binlog_row_image = 'FULL'});
$pipeline->wait_for_table_state('unread', 'stopped');
is($pipeline->table_status('unread', 'last_error_sqlstate'), 'YC005', 'M30: an implicit first label beyond U+FFFF stops the table');

# M5: as booleans, by option: another number than 0 and 1 stops the table, in either phase
write_sql('create table shop.flags (id int primary key, f tinyint(1))', 'insert into shop.flags values (1, 0), (2, 1), (3, null)', 'create table shop.no_flags like shop.flags', 'insert into shop.no_flags values (1, -1)');
my $booleans = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'booleans', tables => '{shop.flags,shop.no_flags,shop.ci}', target_schema => 'booleans', options => '{"tinyint1_as_boolean": true}');
$booleans->start->wait_for_state('streaming')->wait_for_tables;
is($booleans->table_status('no_flags', 'last_error_sqlstate'), '22003', 'M5: a negative number is no boolean');
write_sql('insert into shop.flags values (4, 1)', 'insert into shop.flags values (5, 2)');
$booleans->wait_for_table_state('flags', 'stopped');
ok($postgres->poll(q{select string_agg(coalesce(f::text, 'null'), ',' order by id) from booleans.flags}, 'false,true,null,true'), 'M5: booleans by option') or diag($postgres->{last}, $booleans->describe);
is($booleans->table_status('flags', 'last_error_sqlstate'), '22003', 'M5: 2 is no boolean');

# M6, M33: without a policy a value that has no form stops its table, and never arrives as something else
my %impossible = (
	zero_date => [ 'M6', 'date', q{'0000-00-00'} ],
	zero_day => [ 'M6', 'datetime(3)', q{'2026-05-00 12:00:00'} ],
	no_such_day => [ 'M6', 'date', q{'2026-02-31'} ],
	zero_timestamp => [ 'M6', 'timestamp null', q{'0000-00-00 00:00:00'} ],
	nul_in_text => [ 'M33', 'varchar(10)', q{'a\0b'} ],
	nul_in_json => [ 'M33', 'json', q{'"a\\\\u0000b"'} ],
	$mysql ? () : (not_json => [ 'M26', 'json', q{'not json'} ]),
);
write_sql('create database odd', q{set sql_mode = 'ALLOW_INVALID_DATES'}, 'create table odd.good (id int primary key)', 'insert into odd.good values (1)');
write_sql('set check_constraint_checks = 0') unless $mysql;
for my $name (sort keys %impossible)
{
	my ($number, $type, $value) = @{ $impossible{$name} };
	write_sql("create table odd.${name}_$_ (id int primary key, v $type)", "insert into odd.${name}_$_ values (1, null)") for qw(copied streamed);
	write_sql("insert into odd.${name}_copied values (2, $value)");
}
my $odd = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'odd', schema => 'odd');
$odd->start->wait_for_state('streaming')->wait_for_tables;
write_sql("insert into odd.${_}_streamed values (2, $impossible{$_}[2])") for sort keys %impossible;
write_sql('insert into odd.good values (2)');
for my $table (map { ("${_}_copied", "${_}_streamed") } sort keys %impossible)
{
	my $number = $impossible{ $table =~ s/_[a-z]+$//r }[0];
	eval { $odd->wait_for_table_state($table, 'stopped', 30) } or diag($@);
	like($odd->table_status($table, 'last_error_sqlstate'), qr/^22/, "$number: $table: the error is one of data");
	is($postgres->psql("select count(*) from odd.$table where id = 2"), '0', "$number: $table: nothing else arrived in its place");
}
$odd->wait_for_catchup;
$odd->is_same('the table beside goes on', 'good');
unlike($postgres->log_text, qr/not json|terminated by signal/, 'no value in the log, and no process crashed');

done_testing();

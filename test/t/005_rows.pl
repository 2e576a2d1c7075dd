# The oracle of the other tests, CdcBridge::Rows, against a mirror filled by hand: it must take equal rows for equal,
# however they are spelled, and find every kind of difference. And what tells that a log has no more. Needs no extension.

use strict;
use warnings;

use CdcBridge::Postgres;
use CdcBridge::Rows;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new(conf => "shared_preload_libraries = ''");
my $rows = CdcBridge::Rows->new(source => $source, postgres => $postgres, schema => 'shop', target_schema => 'shop');

$source->sql(
	'create database shop',
	q{set sql_mode = ''},
	q{create table shop.odd (id int primary key, u bigint unsigned, d decimal(30,10), f float, g double, da date, dt datetime(6),
	ts timestamp(3) null, t time(6), y year, s varchar(40), c char(10), b varbinary(20), e enum('a,b', 'ü'), st set('x', 'y'),
	j json, bt bit(10), bo bit(1)) default charset utf8mb4},
	q{insert into shop.odd values
	(1, 18446744073709551615, -0.0000000001, 3.14, 1.7976931348623157e308, '1000-01-01', '9999-12-31 23:59:59.999999',
	 '2026-03-29 01:30:00.120', '-838:59:58.000001', 2155, 'tab\\tnew\\nline \\\\N ü', 'pad  ', x'00ff0a', 'ü', 'x,y',
	 '{"b": [1, 2.50, "x\\\\u00e9\\\\n"], "a": {"k": 1234567890123456789}}', b'1000000001', b'1'),
	(2, 0, 0, -0.0, 0.1, null, null, null, '00:00:00', 0, '', '', '', null, '', 'null', b'0', b'0'),
	(3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)});
$postgres->psql(<<'SQL');
create schema shop;
create table shop.odd (id int primary key, u numeric(20), d numeric(30,10), f real, g double precision, da date, dt timestamp(6),
  ts timestamptz(3), t interval, y smallint, s varchar(40), c varchar(10), b bytea, e text, st text, j jsonb, bt bit(10), bo boolean);
insert into shop.odd values
(1, 18446744073709551615, -0.0000000001, 3.14, 1.7976931348623157e308, '1000-01-01', '9999-12-31 23:59:59.999999',
 '2026-03-29 01:30:00.12+00', '-838:59:58.000001', 2155, E'tab\tnew\nline \\N ü', 'pad', '\x00ff0a', 'ü', 'x,y',
 '{"a": {"k": 1234567890123456789}, "b": [1.0, 2.5, "xé\n"]}', b'1000000001', true),
(2, 0, 0, 0, 0.1, null, null, null, '0', 0, '', '', '', null, '', 'null', b'0000000000', false),
(3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);
SQL

is($rows->differences('odd'), '', 'equal rows are equal, however they are spelled');
is_deeply([ $rows->source_tables ], ['odd'], 'tables are listed');

# every column, changed by the least bit, is found
my %change = (
	u => '18446744073709551614', d => '-0.0000000002', f => '3.1400004', g => '1.7976931348623155e308', da => q{'1000-01-02'},
	dt => q{'9999-12-31 23:59:59.999998'}, ts => q{'2026-03-29 01:30:00.121+00'}, t => q{'-838:59:58'}, y => '2154',
	s => q{E'tab\tnew\nline \\\\N u'}, c => q{' pad'}, b => q{'\x00ff0b'}, e => q{'u'}, st => q{'y,x'},
	j => q{'{"a": {"k": 1234567890123456780}, "b": [1, 2.5, "xé\n"]}'}, bt => q{b'1000000000'}, bo => 'false');
for my $column (sort keys %change)
{
	$postgres->psql("begin; create table shop.keep as table shop.odd; update shop.odd set $column = $change{$column} where id = 1; commit");
	like($rows->differences, qr/only in the source:\n.*only in the mirror:\n/s, "a changed $column is found");
	$postgres->psql('begin; truncate shop.odd; insert into shop.odd table shop.keep; drop table shop.keep; commit');
}
is($rows->differences, '', 'equal again');

$postgres->psql('update shop.odd set s = null where id = 2');
like($rows->differences, qr/NULL/, 'NULL is not the empty string');
$postgres->psql(q{update shop.odd set s = '' where id = 2; alter table shop.odd drop constraint odd_pkey; insert into shop.odd select * from shop.odd where id = 3});
like($rows->differences, qr/only in the mirror/, 'a row doubled is found');
$postgres->psql(q{delete from shop.odd where id = 3});
like($rows->differences, qr/only in the source/, 'a row lost is found');
$postgres->psql('alter table shop.odd drop column y');
like($rows->differences, qr/lacks the columns y/, 'a column that is missing is found');
$postgres->psql('drop table shop.odd');
like($rows->differences, qr/does not exist/, 'a table that is missing is found');

# ---- waiting for the end of the log rests on this one: a log that cannot be read is not an empty one
my ($file, $offset) = $source->binlog_position;
is($source->nothing_after($file, $offset), 1, 'nothing comes after the end of the log');
is($source->nothing_after($file, 4), 0, 'something does after its beginning');
is($source->nothing_after($file, $offset - 1), undef, 'what cannot be read is not known');
isnt($source->{log_error}, '', 'and why');

done_testing();

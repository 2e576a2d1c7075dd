# M30: every character of every character set that the server has, in snapshot and stream, is what the server itself makes of it.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;

# Code points, of which each of Unicode's sets takes its part.
my @points = grep { $_ < 0xd800 || $_ > 0xdfff } (1 .. 0x2fff, map({ 0x3000 + $_ * 13 } 0 .. 4095), map { 0x10000 + $_ * 1021 } 0 .. 1026);
sub utf8_hex { my $c = chr($_[0]); utf8::encode($c); return unpack('H*', $c); }
sub utf16_hex { my ($form, $c) = @_; return unpack('H*', pack($form, $c < 0x10000 ? $c : (0xd800 + ($c - 0x10000 >> 10), 0xdc00 + ($c & 0x3ff)))); }
my %unicode = (
	utf8mb4 => [ map { utf8_hex($_) } @points ], utf8mb3 => [ map { utf8_hex($_) } grep { $_ < 0x10000 } @points ], utf32 => [ map { sprintf('%08x', $_) } @points ],
	utf16 => [ map { utf16_hex('n*', $_) } @points ], utf16le => [ map { utf16_hex('v*', $_) } @points ], ucs2 => [ map { sprintf('%04x', $_) } grep { $_ < 0x10000 } @points ]);

# Sequences of more than two bytes of other sets.
my $jis_x_0212 = [ map { my $second = $_; map { sprintf('8f%02x%02x', $second, $_) } 0xa1 .. 0xfe } 0xa1 .. 0xfe ];
sub gb18030_hex { my ($first, $n) = @_; return sprintf('%02x%02x%02x%02x', $first + int($n / 12600), 0x30 + int($n / 1260) % 10, 0x81 + int($n / 10) % 126, 0x30 + $n % 10); }
my %more = (ujis => $jis_x_0212, eucjpms => $jis_x_0212, gb18030 => [ (map { gb18030_hex(0x81, $_ * 7) } 0 .. 5600), map { gb18030_hex(0x90, $_ * 1237) } 0 .. 840 ]);

my @sets = $source->query_rows(q{select character_set_name, maxlen from information_schema.character_sets where character_set_name <> 'binary' order by 1});
$source->sql('create database shop', 'create database helper', q{set sql_mode = ''}, 'set session group_concat_max_len = 10000000',
	'create table helper.b (b varbinary(4) primary key)',
	'insert into helper.b with recursive n as (select 0 i union all select i + 1 from n where i < 255) select char(i using binary) from n',
	q{insert into helper.b select concat(x.b, y.b) from helper.b x cross join helper.b y where length(x.b) = 1 and length(y.b) = 1});
my $written = 0;
for (@sets)
{
	my ($set, $most) = @$_;
	my @more = @{ $unicode{$set} // $more{$set} // [] };
	$source->sql('create temporary table helper.c (b varbinary(4) primary key)');
	$source->sql('insert into helper.c select b from helper.b where length(b) ' . ($most == 1 ? '= 1' : '<= 2')) unless $unicode{$set};
	while (my @some = splice(@more, 0, 5000)) { $source->sql('insert into helper.c values ' . join(', ', map { "(x'$_')" } @some)); }
	# what the server takes for a character and has a Unicode character for, but no NUL; those with the same first byte in one text
	$source->sql("create table shop.`$set` (id varbinary(4) primary key, v mediumtext character set $set, n int)",
		"insert into shop.`$set` select left(b, 1), group_concat(convert(b using $set) order by b separator ''), count(*) from helper.c "
		  . "where convert(b using $set) is not null and cast(convert(b using $set) as binary) = b and hex(convert(convert(b using $set) using utf8mb4)) not in ('3F', '00', '') "
		  . ($most > 1 ? "and char_length(convert(b using $set)) = 1 " : '') . 'group by 1',
		'drop temporary table helper.c');
	my $count = $source->query_value("select sum(n) from shop.`$set`");
	cmp_ok($count, '>', $set =~ /^(ascii|swe7)$/ ? 90 : 120, "M30: $set has $count characters");
	$written += $count;
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
my @names = map { $_->[0] } @sets;
$pipeline->are_same('snapshot', { map { $_ => "M30: $_" } @names }, @names);
$source->sql("insert into shop.`$_` select concat('s', id), v, n from shop.`$_`", "delete from shop.`$_` where length(id) = 1") for @names;
$pipeline->wait_for_catchup;
$pipeline->are_same('stream', { map { $_ => "M30: $_" } @names }, @names);
is($postgres->psql('select ' . join(' + ', map { "(select sum(n) from shop.\"$_\")" } @names)), $written, 'no character is lost');

done_testing();

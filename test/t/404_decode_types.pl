# cells: pg15 pg17 pg18
# Every type of PostgreSQL through JSON and back: the value that is read back is the same, byte by byte, in all formats and with the
# options that change how values look; by a reader of the slot, and through the files of a pipeline.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Export;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new->allow_output_plugin;
$postgres->psql(<<'SQL');
create schema ty;
create schema other;
create extension hstore; create extension citext; create extension ltree; create extension cube;
create type mood as enum ('sad', 'it''s "ok"', 'glücklich');
create type other.mood as enum ('happy', 'sad');
create domain small as int check (value < 1000);
create domain smaller as small check (value < 100);
create domain list as int[];
create domain feeling as mood;
create domain key8 as bytea;
create type pair as (a int, "B b" text, c timestamptz);
create type nested as (p pair, l int[], m mood);
create type span as range (subtype = float8);
SQL
my $major = $postgres->major;

# type, its values as SQL texts; how a JSON value is read back, where that is not json_populate_record
my @types = (
	[ 'boolean', qw(true false) ],
	[ 'smallint', qw(-32768 32767 0) ], [ 'integer', qw(-2147483648 2147483647) ], [ 'bigint', qw(-9223372036854775808 9223372036854775807 9007199254740993) ],
	[ 'oid', qw(0 4294967295) ], [ 'xid8', '18446744073709551615' ], [ 'regclass', 'pg_class', 'ty.t1' ], [ 'tid', '(4294967295,65535)' ], [ 'xid', '4294967295' ], [ 'regtype', 'integer', 'other.mood' ], [ 'int2vector', '', '1 -2 3' ], [ 'oidvector', '1 2' ],
	[ 'real', qw(0.1 1e-45 3.4028235e38 -0 NaN Infinity -Infinity) ], [ 'double precision', qw(0.1 5e-324 1.7976931348623157e308 -0 1e15 123456789012345680 NaN Infinity -Infinity) ],
	# P24, P25: no number, no typmod, more than 38 digits, negative scale
	[ 'numeric', qw(0 -0.00 12.500 NaN Infinity -Infinity 1e-30), '9' x 60, '0.' . '1' x 60, '1' . '0' x 200 ], [ 'numeric(5,-2)', qw(1234567 -1234500) ], [ 'numeric(4,6)', '0.001234' ], [ 'numeric(10,2)', qw(-1.10 NaN) ],
	# P29: money
	[ 'money', qw(0 -12.34 92233720368547758.07) ],
	[ 'text', '', ' ', q{"quoted"\\ /}, "tab\tline\nreturn\r\x01\x1f\x7f", "\x{c3}\x{a4}\x{e2}\x{82}\x{ac}\x{f0}\x{9f}\x{98}\x{80}\x{e2}\x{80}\x{a8}", 'null', '{"a":1}' ],
	[ 'varchar(5)', 'abc' ], [ 'char(5)', 'abc' ], [ '"char"', 'x' ], [ 'name', 'a"b' ], [ 'citext', 'AbC' ],
	[ 'bytea', '\\x', '\\x00', '\\x00ff5c22', '\\x' . 'ab' x 3000 ],
	# P31: bit strings
	[ 'bit(1)', qw(0 1) ], [ 'bit(11)', '10110011100' ], [ 'varbit', '', '1', '0' x 77 ], [ 'varbit(1)', '1' ],
	[ 'date', qw(2024-02-29 infinity -infinity 5874897-12-31 0001-01-01), '4714-11-24 BC', '0001-12-31 BC' ],
	# P27: the end of a day, zones, fractions
	[ 'time', qw(00:00:00 24:00:00 12:34:56.789012 23:59:59.999999) ], [ 'time(0)', '24:00:00' ], [ 'time(2)', '01:02:03.4' ], [ 'timetz', qw(12:00:00+02 24:00:00-15:59:59 00:00:00.000001+05:30) ],
	[ 'timestamp', '2024-02-29 12:00:00', '1999-12-31 23:59:59.999999', 'infinity', '-infinity', '294276-12-31 23:59:59.999999', '4714-11-24 00:00:00 BC' ], [ 'timestamp(3)', '2024-02-29 12:00:00.123' ],
	[ 'timestamptz', '2024-02-29 12:00:00+02', '1969-12-31 23:59:59.999999+00', 'infinity', '-infinity', '294276-12-31 23:59:59.999999+00', '4714-11-24 00:00:00+00 BC' ],
	# P28: mixed signs
	[ 'interval', '0', '1 year 2 mons 3 days 04:05:06.789', '-1 year 2 mons -3 days 04:05:06.000001', '1 mon -1 day', '-00:00:00.000001', '178000000 years', $major >= 17 ? ('infinity', '-infinity') : () ], [ 'interval year to month', '1 year 1 month' ],
	[ 'uuid', '00000000-0000-0000-0000-000000000000', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' ],
	[ 'json', '{"b":1,  "a":[1.0,1e400,null],"b":2}', 'null', '"x"', '"\\u00e4\\ud83d\\ude00"' ],
	[ 'jsonb', '{"b": 1, "a": [1.0, 1e400, null, true, {"x": "\\"\\\\"}]}', 'null', '""', '123456789012345678901234567890.123456789' ],
	[ 'jsonpath', '$.a[*] ? (@ > 1)' ], [ 'xml', '<a b="c">d &amp; e</a>', '<x/>' ],
	[ 'inet', qw(10.0.0.1 10.0.0.1/8 ::1 2001:db8::/32) ], [ 'cidr', qw(10.0.0.0/8 ::/0) ], [ 'macaddr', '08:00:2b:01:02:03' ], [ 'macaddr8', '08:00:2b:01:02:03:04:05' ],
	[ 'point', '(1.1,-2)', '(NaN,Infinity)', '(0.1,1e-300)' ], [ 'line', '{1,2,3}' ], [ 'lseg', '[(1,2),(3,4)]' ], [ 'box', '(3,4),(1,2)' ], [ 'path', '[(1,2),(3,4)]', '((1,2),(3,4))' ], [ 'polygon', '((1,2),(3,4),(5,6))' ], [ 'circle', '<(1,2),3>' ],
	# P30: ranges
	[ 'int4range', 'empty', '[1,5)', '(,)', '[1,)' ], [ 'int8range', '[1,9007199254740993)' ], [ 'numrange', '(1.10,2.5]', '[NaN,NaN]' ], [ 'tsrange', '["2024-01-01 00:00:00","2024-01-02 00:00:00.5")', '[,infinity]' ],
	[ 'tstzrange', '["2024-01-01 00:00:00+02",)' ], [ 'daterange', '[2024-01-01,2024-02-01)', '[-infinity,infinity)' ], [ 'span', '[0.1,NaN)' ],
	[ 'int4multirange', '{}', '{[1,3),[5,9)}' ], [ 'nummultirange', '{[1.0,2.0]}' ], [ 'tstzmultirange', '{["2024-01-01 00:00:00+00","2024-01-02 00:00:00+00")}' ],
	[ 'tsvector', q{'a':1A,3 'b''c':2 'd'} ], [ 'tsquery', q{'a' & ( 'b':* | !'c' ) <-> 'd'} ], [ 'pg_lsn', 'FFFFFFFF/FFFFFFFF' ], [ 'pg_snapshot', '10:20:10,14,15' ],
	# P29: types of extensions
	[ 'hstore', '"a"=>"1", "b"=>NULL, "c\\"d"=>"e,f"' ], [ 'ltree', 'Top.Science' ], [ 'cube', '(1, 2),(3, 4)' ],
	# P21: enums, of the same name in two schemas
	[ 'mood', 'sad', q{it's "ok"}, "gl\x{c3}\x{bc}cklich" ], [ 'other.mood', 'sad', 'happy' ],
	# P30: domains and composite types
	[ 'small', '999' ], [ 'smaller', '-5' ], [ 'list', '{1,2}' ], [ 'feeling', 'sad' ], [ 'key8', '\\x01' ], [ 'pair', '(1,"a ""b"" , c","2024-01-01 00:00:00+00")', '(,,)' ], [ 'nested', '("(1,x,)","{1,2}",sad)' ],
	# arrays
	[ 'int[]', '{}', '{1,NULL,3}', '{{1,2},{3,4}}', '{{{1},{2}}}' ], [ 'bigint[]', '{9007199254740993}' ], [ 'text[]', '{a,NULL,"NULL","","x\\"y\\\\z","a,b","{c}"}', '{{a,b},{c,d}}' ], [ 'boolean[]', '{t,f,NULL}' ], [ 'numeric[]', '{1.10,NaN,Infinity}' ],
	[ 'double precision[]', '{0.1,NaN,-Infinity}' ], [ 'real[]', '{0.1}' ], [ 'date[]', '{2024-01-01,infinity}' ], [ 'timestamp[]', '{"2024-01-01 00:00:00"}' ], [ 'timestamptz[]', '{"2024-01-01 00:00:00+00",-infinity}' ], [ 'interval[]', '{"1 mon -1 days"}' ],
	[ 'uuid[]', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}' ], [ 'mood[]', '{sad,NULL}' ], [ 'pair[]', '{"(1,\\"a\\",)"}' ], [ 'smaller[]', '{1,2}' ], [ 'int4range[]', '{"[1,2)",empty}' ], [ 'inet[]', '{10.0.0.1/8}' ], [ 'hstore[]', '{"\\"a\\"=>\\"1\\""}' ], [ 'money[]', '{1.50}' ], [ 'char(3)[]', '{ab}' ], [ 'bit(2)[]', '{10}' ], [ 'time[]', '{24:00:00}' ],
	[ 'bytea[]', '{"\\\\x00ff","\\\\x"}' ], [ 'jsonb[]', '{"{\\"a\\": 1}","null"}' ],
);

# what is read back by another expression than json_populate_record: with arrays as JSON, and as text
my %read = (
	json => [ q{(d->'row'->>'v')::json} ], jsonb => [ q{(d->'row'->>'v')::jsonb} ],
	'bytea' => [ q{decode(d->'row'->>'v', 'base64')} ], 'key8' => [ q{decode(d->'row'->>'v', 'base64')::key8} ],
	'bytea[]' => [ q{array(select decode(x, 'base64') from json_array_elements_text(d->'row'->'v') x)}, q{(d->'row'->>'v')::bytea[]} ],
	'jsonb[]' => [ q{array(select x::jsonb from json_array_elements_text(d->'row'->'v') x)}, q{(d->'row'->>'v')::jsonb[]} ],
);

my $slot = CdcBridge::Decode->new($postgres, 'a', tables => 'ty.*');
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{ty.*}', options => '{"schema_changes": "ignore"}')->setup->start->wait_for_state('streaming');
my $sql = '';
for my $n (0 .. $#types)
{
	my ($type, @values) = @{ $types[$n] };
	$sql .= "create table ty.t$n (id int primary key, v $type);\n";
	$sql .= "insert into ty.t$n values " . join(', ', map { my $v = $values[$_]; $v =~ s/'/''/g; $v =~ s/\\/\\\\/g; "($_, E'$v')" } 0 .. $#values) . ", (99, null);\n";
}
$postgres->psql($sql);
my $rows = 0;
$rows += @$_ for @types;    # as many values as the list has without its name, and a null

# Where a format has the row and the name of its table.
my %path = (
	'json' => 'd',
	'debezium-json' => q{json_build_object('row', d->'after', 'table', d->'source'->'table')},
	'debezium-unwrapped-json' => q{json_build_object('row', d, 'table', d->'__table')},
	'canal-json' => q{json_build_object('row', d->'data'->0, 'table', d->'table')},
	'maxwell-json' => q{json_build_object('row', d->'data', 'table', d->'table')},
	'changelog-json' => q{json_build_object('row', d->'data', 'table', d->'_cdc_bridge'->'table')},
);

# Compare what came with what is there; returns the types that differ.
sub different
{
	my ($way, %options) = @_;
	my $file = delete $options{file};
	my $query = $slot->_query('peek', %options) =~ s/select data from/select data::json d from/r;
	$postgres->psql('drop table if exists got; create table got ' . ($file
		? qq{(d json); copy got from '$file' (format csv, delimiter E'\\x01', quote E'\\x02'); delete from got where d->'cdc_bridge' is not null}
		: "as $query"));
	my $path = $path{ $options{format} // 'json' };
	is($postgres->psql('select count(*) from got'), $rows, 'every row came');
	my @queries;
	for my $n (0 .. $#types)
	{
		my $type = $types[$n][0];
		my $expression = ($read{$type} // [])->[$way] // ($read{$type} // [])->[0] // "(json_populate_record(null::ty.t$n, d->'row')).v";
		$expression = "(case when d->'row'->>'v' is not null then $expression end)::$type" if $read{$type};
		$expression = "(d->'row'->'v')::$type" if ($options{json} // '') eq 'embed' && $type =~ /^jsonb?$/;
		$expression =~ s/json_array_elements_text/json_array_elements/ if ($options{json} // '') eq 'embed' && $type eq 'jsonb[]';
		(my $name = $type) =~ s/'/''/g;
		push @queries, "(select '$name: ' || string_agg(t.id::text, ',') from ty.t$n t full join (select (d->'row'->>'id')::int id, $expression v from (select $path d from got) x where d->>'table' = 't$n') g using (id) "
		  . "where not record_image_eq(row(t.v), row(g.v)) or t.id is null or g.id is null having count(*) > 0)";
	}
	return [ split(/\n/, $postgres->psql(join(' union all ', @queries))) ];
}

is_deeply(different(0), [], 'P21, P24, P25, P27, P28, P29, P30, P31: every type through plain JSON and back');
is_deeply(different(1, arrays => 'text', numeric => 'number'), [], '... with arrays as text and numeric as numbers');
is_deeply(different(0, format => 'debezium-json'), [], '... through Debezium JSON');
is_deeply(different(0, format => 'debezium-unwrapped-json', unwrap_fields => 'table'), [], '... unwrapped');
is_deeply(different(0, format => 'maxwell-json', json => 'string'), [], '... through Maxwell JSON');
is_deeply(different(0, format => 'changelog-json'), [], '... through changelog-json');
is_deeply(different(1, format => 'canal-json', arrays => 'text', binary => 'base64'), [], '... through Canal JSON');
$export->wait_for_all;
is_deeply(different(0, format => 'debezium-json', file => ($export->files)[0]), [], 'P21, P24, P25, P27, P28, P29, P30, P31: ... through the file of a pipeline');
$export->drop;
is_deeply(different(0, json => 'embed'), [ 'json: 99', 'jsonb: 99' ], '... with JSON in JSON: but for NULL, which reads back as JSON\'s own null');
is($postgres->psql(q{select d->'row'->>'v' from got where d->>'table' = 't} . (grep { $types[$_][0] eq 'jsonb' } 0 .. $#types)[0] . q{' and (d->'row'->>'id')::int = 3}), '123456789012345678901234567890.123456789', 'jsonb: big numbers keep their digits');

# ---- "char" is a byte, and need not be a character
$postgres->psql(q{create table ty.bytes (id int primary key, v "char"); insert into ty.bytes select g, g::"char" from generate_series(-128, 127) g});
my @bytes = map { JSON::PP->new->utf8->decode($_)->{row}{v} } grep { /"bytes"/ } $slot->peek_lines;
is_deeply([ @bytes[ 0, 127, 128, 128 + 65, 255 ] ], [ '\\200', '\\377', '', 'A', "\x7f" ], '"char": each byte gives valid JSON');

# ---- arrays with other lower bounds
$postgres->psql(q{create table ty.bounds (id int primary key, v int[]); insert into ty.bounds values (1, '[0:1]={7,8}')});
is((grep { /"bounds"/ } $slot->peek_lines(arrays => 'text'))[0] =~ /"v":"(.*?)"/ && $1, '[0:1]={7,8}', 'arrays as text keep lower bounds');

# ---- types with a schema: what they are called
my ($schema) = grep { /"bounds"/ } $slot->peek_lines(format => 'debezium-json', schemas => 'on');
like($schema, qr/\{"type":"array","items":\{"type":"int32","optional":true\},"optional":true,"field":"v"\}/, 'an array in the schema');

# ---- P21: labels that come and are renamed, while the relation stays as it is
$slot->skip;
$postgres->psql(<<'SQL');
create table ty.feel (id int primary key, m mood, l mood[]);
insert into ty.feel values (1, 'sad', '{sad}');
alter type mood add value 'new' before 'sad';
insert into ty.feel values (2, 'new', '{new}');
alter type mood rename value 'sad' to 'blue';
insert into ty.feel values (3, 'blue', '{blue}');
alter type mood rename to humour;
insert into ty.feel values (4, 'new', '{}');
SQL
is_deeply([ map { [ @{ $_->{row} }{qw(m l)}, $_->{types}{m} ] } $slot->take(include_types => 'on') ],
	[ [ 'sad', ['sad'], 'public.mood' ], [ 'new', ['new'], 'public.mood' ], [ 'blue', ['blue'], 'public.mood' ], [ 'new', [], 'public.humour' ] ], 'P21: labels and names of enums as they were');

# ---- a composite type that changes under its table
$postgres->psql(<<'SQL');
create table ty.comp (id int primary key, p pair);
insert into ty.comp values (1, row(1, 'x', null));
alter type pair add attribute d int;
insert into ty.comp values (2, row(1, 'x', null, 4));
SQL
is_deeply([ map { $_->{row}{p} } $slot->take ], [ '(1,x,)', '(1,x,,4)' ], 'P30: a composite type that grows');

# ---- money has the digits that lc_monetary gives it, wherever it is read
SKIP:
{
	my ($status) = $postgres->try_psql(q{set lc_monetary = 'ja_JP.utf8'});
	skip('the system has no ja_JP.utf8', 1) if $status;
	$postgres->psql(q{alter database postgres set lc_monetary = 'ja_JP.utf8'; create table ty.yen (id int primary key, v money)});
	$postgres->psql(q{insert into ty.yen values (1, '1234')});
	is(($slot->take)[0]{row}{v}, '1234', 'P29: money without digits behind the point');
}

done_testing();

# cells: pg15 pg18
# Odd values of PostgreSQL by formats: what each of them writes, to the letter. That every type reads back is 404.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new->allow_output_plugin;
my $major = $postgres->major;
$postgres->psql(<<'SQL');
create extension hstore;
create type mood as enum ('sad', 'it''s "ok"');
create domain small as int check (value < 1000);
create domain smaller as small;
create type pair as (a int, "B" text);
SQL

my $digits = '1' . '0' x 60 . '.' . '1' x 40;
# type, value, what formats write: json, debezium-json and unwrapped; canal-json when it is not that in a string; maxwell-json; changelog-json (as maxwell-json)
my @cases = (
	# P24, P25: no number, any size
	[ 'numeric', 'NaN', '"NaN"' ], [ 'numeric', '-Infinity', '"-Infinity"' ], [ 'numeric', $digits, qq{"$digits"}, undef, $digits ], [ 'numeric', '-0.00', '"0.00"', undef, '0.00' ], [ 'numeric(5,-2)', '1234567', '"1234600"', undef, '1234600' ],
	[ 'float8', 'NaN', '"NaN"' ], [ 'float8', 'Infinity', '"Infinity"' ], [ 'float8', '-0', '-0' ], [ 'float4', '0.1', '0.1' ], [ 'float8', '5e-324', '5e-324' ],
	[ 'bigint', '-9223372036854775808', '-9223372036854775808' ], [ 'boolean', 't', 'true' ], [ 'oid', '4294967295', '4294967295' ],
	# P29
	[ 'money', '-12.34', '"-12.34"', undef, '-12.34' ],
	[ 'date', 'infinity', '"infinity"' ], [ 'date', '0044-03-15 BC', '"0044-03-15 BC"' ], [ 'date', '5874897-12-31', '"5874897-12-31"' ],
	[ 'timestamp', '2024-02-29 12:00:00.5', '"2024-02-29T12:00:00.5"', '"2024-02-29 12:00:00.5"', '"2024-02-29 12:00:00.5"' ],
	[ 'timestamptz', '2024-02-29 12:00:00+02', '"2024-02-29T10:00:00Z"', '"2024-02-29 10:00:00Z"', '"2024-02-29 10:00:00Z"' ],
	[ 'timestamp', '-infinity', '"-infinity"' ], [ 'timestamptz', '4714-11-24 00:00:00+00 BC', '"4714-11-24T00:00:00Z BC"', '"4714-11-24 00:00:00Z BC"', '"4714-11-24 00:00:00Z BC"' ],
	# P27, P28
	[ 'time', '24:00:00', '"24:00:00"' ], [ 'timetz', '12:00:00.25-03:30', '"12:00:00.25-03:30"' ], [ 'interval', '-1 year 2 mons -3 days 04:05:06.000001', '"P-10M-3DT4H5M6.000001S"' ], [ 'interval', '0', '"PT0S"' ],
	$major >= 17 ? [ 'interval', '-infinity', '"-infinity"' ] : (),
	# P30, P31
	[ 'bit(3)', '101', '"101"' ], [ 'varbit', '', '""' ],
	[ 'int[]', '{{1,NULL},{3,4}}', '[[1,null],[3,4]]', '"[[1,null],[3,4]]"' ], [ 'int[]', '{}', '[]', '"[]"' ], [ 'text[]', '{"a\\"b",NULL,"NULL"}', '["a\\"b",null,"NULL"]', '"[\\"a\\\\\\"b\\",null,\\"NULL\\"]"' ],
	[ 'numeric[]', '{1.50,NaN}', '["1.50","NaN"]', '"[\\"1.50\\",\\"NaN\\"]"', '[1.50,"NaN"]' ], [ 'timestamp[]', '{"2024-01-01 00:00:00"}', '["2024-01-01T00:00:00"]', '"[\\"2024-01-01 00:00:00\\"]"', '["2024-01-01 00:00:00"]' ],
	[ 'bytea[]', '{"\\\\\\\\x00ff"}', '["AP8="]', "\"[\\\"\\\\u0000\x{c3}\x{bf}\\\"]\"" ],
	[ 'int4range', '[1,5)', '"[1,5)"' ], [ 'numrange', 'empty', '"empty"' ], [ 'int4multirange', '{[1,3),[5,9)}', '"{[1,3),[5,9)}"' ],
	[ 'mood', q{it's "ok"}, q{"it's \\"ok\\""} ], [ 'smaller', '5', '5' ], [ 'pair', '(1,"a ""b"" , c")', '"(1,\\"a \\"\\"b\\"\\" , c\\")"' ],
	[ 'bytea', '\\x00ff22', '"AP8i"', "\"\\u0000\x{c3}\x{bf}\\\"\"" ], [ 'bytea', '\\x', '""' ],
	[ 'jsonb', '{"b": 1e400, "a": null}', '"{\\"a\\": null, \\"b\\": 1' . '0' x 400 . '}"', undef, '{"a": null, "b": 1' . '0' x 400 . '}', '"{\\"a\\": null, \\"b\\": 1' . '0' x 400 . '}"' ],
	[ 'json', "{\"x\":\n1}", '"{\\"x\\":\\n1}"', undef, '{"x": 1}', '"{\\"x\\":\\n1}"' ], [ 'jsonb', 'null', '"null"', undef, 'null', '"null"' ],
	[ 'inet', '10.0.0.1/8', '"10.0.0.1/8"' ], [ 'uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"' ], [ 'xml', '<a b="c">d</a>', '"<a b=\\"c\\">d</a>"' ], [ 'hstore', '"a"=>NULL', '"\\"a\\"=>NULL"' ],
	[ 'text', "\t\x01\x{c3}\x{a4}\"\\", "\"\\t\\u0001\x{c3}\x{a4}\\\"\\\\\"" ], [ 'char(3)', 'a', '"a  "' ], [ 'text', undef, 'null' ],
);

my @slots = map { [ $_, CdcBridge::Decode->new($postgres, s/\W/_/gr, format => $_, tables => 'public.t') ] } qw(json debezium-json debezium-unwrapped-json canal-json maxwell-json changelog-json);
sub literal { my ($v) = @_; return 'null' unless defined $v; $v =~ s/'/''/g; $v =~ s/\\/\\\\/g; return "E'$v'"; }
$cases[$_][1] =~ s/\\\\\\\\x/\\\\x/ for grep { defined $cases[$_][1] } 0 .. $#cases;
$postgres->psql('create table t (id int primary key, ' . join(', ', map { "c$_ $cases[$_][0]" } 0 .. $#cases) . '); insert into t values (1, ' . join(', ', map { literal($cases[$_][1]) . "::$cases[$_][0]" } 0 .. $#cases) . ')');

for (@slots)
{
	my ($format, $slot) = @$_;
	my ($line) = $slot->peek_lines;
	my %got = map { $line =~ ($_ < $#cases ? qr/"c$_":(.*?),"c${\ ($_ + 1)}":/s : qr/"c$_":(null)/) ? ("c$_" => $1) : () } 0 .. $#cases;
	my @different;
	for my $n (0 .. $#cases)
	{
		my ($type, $value, $json, $canal, $maxwell, $changelog) = @{ $cases[$n] };
		my $want = $json;
		$want = $maxwell // $json if $format eq 'maxwell-json';
		$want = $changelog // $maxwell // $json if $format eq 'changelog-json';
		$want = $canal // ($json =~ /^"/ || $json eq 'null' ? $json : qq{"$json"}) if $format eq 'canal-json';
		push @different, "$type " . ($value // 'NULL') . ': ' . ($got{"c$n"} // 'nothing') . ", not $want" if ($got{"c$n"} // '') ne $want;
	}
	is_deeply(\@different, [], "P24, P25, P27, P28, P29, P30, P31: values in $format");
}

# A key has its values in the same form.
$postgres->psql(q{create table k (n numeric(4,2), at timestamptz, primary key (n, at)); alter table k replica identity full});
my %key;
for my $format (map { $_->[0] } @slots)
{
	my $slot = CdcBridge::Decode->new($postgres, 'key', format => $format, tables => 'public.k', include_key => 'on');
	$postgres->psql(q{insert into k values (1.50, '2024-01-01 00:00:00+00'); delete from k});
	my ($line) = $slot->peek_lines;
	($key{$format}) = $line =~ /.*"key":(\{.*\})\}$/;
	$slot->drop;
}
is_deeply(\%key, { (map { $_ => '{"n":"1.50","at":"2024-01-01T00:00:00Z"}' } qw(json debezium-json debezium-unwrapped-json)), 'canal-json' => '{"n":"1.50","at":"2024-01-01 00:00:00Z"}',
	'maxwell-json' => '{"database":"public","table":"k","pk.n":1.50,"pk.at":"2024-01-01 00:00:00Z"}', 'changelog-json' => '{"n":1.50,"at":"2024-01-01 00:00:00Z"}' }, 'keys');

done_testing();

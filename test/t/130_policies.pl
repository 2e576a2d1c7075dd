# Values that have no form here: each policy gives the same in the snapshot, an insert and an update, counted; columns of the key
# have none; without a policy the table stops.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use File::Copy qw(copy);
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $bad = "\xef\xbf\xbd";    # U+FFFD
sub literal { return $source->dbh->quote($_[0]); }

my %policies = (
	nulls => '{"zero_date": null, "nul_bytes": "strip", "invalid_bytes": "replace"}',
	infinities => '{"zero_date": "infinity", "nul_bytes": "replace", "invalid_bytes": "replace"}',
	epochs => '{"zero_date": "epoch", "nul_bytes": "strip"}',
	errors => '{}',
);

$source->sql('create database shop', 'create database raw', q{set sql_mode = 'ALLOW_INVALID_DATES'});

# No client may store bytes in a utf8mb4 column that are no UTF-8, so the files of a table with such bytes go under one. From there
# they can be copied: MySQL looks at them on the way into a VARCHAR, but not into a TEXT.
sub make_raw
{
	my @values = @_;
	$source->sql('create table raw.binaries (id int primary key, v blob) engine = myisam', 'create table raw.texts (id int primary key, v text) engine = myisam charset utf8mb4');
	$source->sql(map { "insert into raw.binaries values ($_, x'" . unpack('H*', $values[ $_ - 1 ]) . q{')} } 1 .. @values);
	$source->sql('flush tables raw.binaries, raw.texts');
	my $folder = "$source->{dir}/data/raw";
	copy("$folder/binaries.$_", "$folder/texts.$_") or die "copy: $!\n" for qw(MYD MYI);
	$source->sql('flush tables raw.binaries, raw.texts');
}
my @broken = ("a\xffb", "\xe4\xb8", "\xc0\x80x\xed\xa0\x80y", "z\x80\x80", "n\0\xfe", 'good');
make_raw(@broken);
is_deeply([ map { unpack('H*', $_->[0]) } $source->query_rows('select v from raw.texts') ], [ map { unpack('H*', $_) } @broken ], 'the source has text that is no UTF-8');

# table => [ columns beside id and n, good values,
#   [ values, how many of them have no form, what the pipelines make of it (without: the table stops there) ], ... ]
my %table = (
	dates => [
		q{d date not null, dt datetime(3) not null, ts timestamp not null default '0000-00-00 00:00:00', o datetime}, q{'2026-01-02', '2026-01-02 03:04:05.678', '2026-01-02 03:04:05', null},
		[ q{'0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00'}, 4,
			nulls => 'NULL|NULL|NULL|NULL', infinities => '-infinity|-infinity|-infinity|-infinity', epochs => '1970-01-01|1970-01-01 00:00:00|1970-01-01 00:00:00+00|1970-01-01 00:00:00' ],
		[ q{'2026-05-00', '2026-00-10 12:00:00.5', '2026-01-02 03:04:05', null}, 2,
			nulls => 'NULL|NULL|2026-01-02 03:04:05+00|NULL', infinities => '-infinity|-infinity|2026-01-02 03:04:05+00|NULL', epochs => '1970-01-01|1970-01-01 00:00:00|2026-01-02 03:04:05+00|NULL' ],
		[ q{'2026-02-31', '0000-01-01 00:00:00', '1970-01-01 00:00:01', '2026-00-00 23:59:59'}, 2,
			nulls => 'NULL|0001-01-01 00:00:00 BC|1970-01-01 00:00:01+00|NULL', infinities => '-infinity|0001-01-01 00:00:00 BC|1970-01-01 00:00:01+00|-infinity',
			epochs => '1970-01-01|0001-01-01 00:00:00 BC|1970-01-01 00:00:01+00|1970-01-01 00:00:00' ],
	],
	texts => [
		'v varchar(8), c char(8), t longtext character set utf8mb3', q{'plain', 'plain', null},
		[ join(', ', map { literal($_) } "\0", "a\0\0b", "sesame\0"), 3, nulls => '|ab|sesame', epochs => '|ab|sesame', infinities => "$bad|a$bad${bad}b|sesame$bad" ],
		[ join(', ', map { literal($_) } "1234567\0", "ü\0€", ''), 2, nulls => '1234567|ü€|', epochs => '1234567|ü€|', infinities => "1234567$bad|ü$bad€|" ],
		[ q{'\\\\0', 'x', null}, 0, map { $_ => '\\0|x|NULL' } qw(nulls infinities epochs) ],
	],
	jsons => [
		'j json', q{'{}'},
		[ literal('"a\\u0000b"'), 1, nulls => '"ab"', epochs => '"ab"', infinities => qq{"a${bad}b"} ],
		[ literal('{"k\\u0000": ["\\u0000x\\u0000", "\\\\u0000", "\\\\\\u0000", 1, null]}'), 1, (map { $_ => '{"k": ["x", "\\\\u0000", "\\\\", 1, null]}' } qw(nulls epochs)),
			infinities => qq({"k$bad": ["${bad}x$bad", "\\\\u0000", "\\\\$bad", 1, null]}) ],
		[ literal('"\\\\u0000"'), 0, map { $_ => '"\\\\u0000"' } qw(nulls infinities epochs) ],
	],
	charsets => [
		'u varchar(9) character set ucs2, c varchar(9) character set cp1251, s varchar(9) character set gbk, e varchar(9) character set latin1', q{'Ж', 'Ж', '中', 'é'},
		[ q{_ucs2 x'0061d83d0062', _cp1251 x'c698ea', '中', _latin1 x'81'}, 2, map { $_ => "a${bad}b|Ж${bad}к|中|\xc2\x81" } qw(nulls infinities) ],
		[ q{_ucs2 x'de00d83dd83d', 'x', 'x', 'x'}, 1, map { $_ => "$bad$bad$bad|x|x|x" } qw(nulls infinities) ],
	],
	# where the values come from raw.texts, by its id
	utf8 => [
		'v text', 6,
		[ 1, 1, map { $_ => "a${bad}b" } qw(nulls infinities) ], [ 2, 1, map { $_ => $bad } qw(nulls infinities) ], [ 3, 1, map { $_ => "${bad}x${bad}y" } qw(nulls infinities) ],
		[ 4, 1, map { $_ => "z$bad$bad" } qw(nulls infinities) ], [ 5, 1, nulls => "n$bad", infinities => "n$bad$bad" ],
	],
	good => [ 'v int', 1, [ 2, 0, map { $_ => '2' } sort keys %policies ] ],
);
my %sqlstate = (dates => '22008', texts => '22021', jsons => '22P05', charsets => '22021', utf8 => '22021');
my %number = (dates => 'M6', texts => 'M33', jsons => 'M33', charsets => 'M34', utf8 => 'M34');    # of the case in our list
my @names = sort keys %table;

sub columns { my ($name) = @_; return map { (split)[0] } split(/,\s*(?=\w+ \w)/, $table{$name}[0]); }

sub insert
{
	my ($name, $id, $values) = @_;
	$source->sql($name eq 'utf8' ? "insert into shop.$name select $id, 0, v from raw.texts where id = $values" : "insert into shop.$name values ($id, 0, $values)");
}

for my $name (@names)
{
	my ($columns, $good, @rows) = @{ $table{$name} };
	$source->sql("create table shop.$name (id int primary key, n int, $columns) charset utf8mb4");
	insert($name, $_, $rows[ $_ - 1 ][0]) for 1 .. @rows;
}
# columns of the key, and targets that somebody else made
$source->sql(
	'create table shop.key_date (d date, id int, primary key (d, id))', q{insert into shop.key_date values ('0000-00-00', 1)},
	'create table shop.key_text (k varchar(10) primary key) charset utf8mb4', q{insert into shop.key_text values ('a')},
	'create table shop.key_charset (k varchar(10) character set ucs2 primary key)', q{insert into shop.key_charset values ('a')},
	'create table shop.own_text (id int primary key, d date)', q{insert into shop.own_text values (1, '0000-00-00')},
	'create table shop.own_json (id int primary key, j json)', 'insert into shop.own_json values (1, ' . literal('"\\u0000"') . ')',
	'create table shop.own_strict (id int primary key, d datetime)', q{insert into shop.own_strict values (1, null)},
	'delete from shop.own_strict');

my %pipeline;
for my $policy (sort keys %policies)
{
	$postgres->psql("create schema $policy; create table $policy.own_text (id integer primary key, d text); create table $policy.own_json (id integer primary key, j json); "
		. "create table $policy.own_strict (id integer primary key, d timestamp not null)");
	$pipeline{$policy} = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => $policy, server => "server_$policy", schema => 'shop', target_schema => $policy,
		options => $policies{$policy})->setup->start;
}
$_->wait_for_state('streaming')->wait_for_tables->wait_for_catchup for values %pipeline;

for my $name (@names)
{
	my ($columns, $good, @rows) = @{ $table{$name} };
	for my $i (0 .. $#rows)
	{
		my ($values) = @{ $rows[$i] };
		insert($name, 1001 + $i, $values);
		insert($name, 2001 + $i, $good);
		my $set = join(', ', map { "g.$_ = b.$_" } columns($name));
		$source->sql("update shop.$name g join shop.$name b on b.id = 1001 + $i set $set where g.id = 2001 + $i", "update shop.$name set n = 1 where id = 1 + $i");
	}
}
$source->sql(q{insert into shop.key_text values ('b\0')}, q{insert into shop.key_charset values (_ucs2 x'd83d')}, q{insert into shop.own_text values (2, '2026-05-00')},
	'insert into shop.own_json values (2, ' . literal('"\\u0000"') . ')', q{insert into shop.own_strict values (2, '0000-00-00')});
$_->wait_for_catchup for values %pipeline;

for my $policy (sort keys %policies)
{
	my $of = $pipeline{$policy};
	for my $name (@names)
	{
		my ($columns, $good, @rows) = @{ $table{$name} };
		if (grep { my ($values, $count, %want) = @$_; !defined $want{$policy} } @rows)
		{
			$of->wait_for_table_state($name, 'stopped');
			is($of->table_status($name, 'last_error_sqlstate'), $sqlstate{$name}, "$policy, $name: the table is stopped");
			is($of->table_status($name, 'values_replaced'), '0', "$policy, $name: nothing was replaced");
			like($of->table_status($name, 'last_error_hint'), qr/option "\w+"/, "$policy, $name: the hint names the option");
			next;
		}
		is($of->table_status($name, 'state'), 'streaming', "$policy, $name: the table streams") or diag($of->describe);
		my $list = join(" || '|' || ", map { "coalesce($_\::text, 'NULL')" } columns($name));
		my %got = map { split(/=/, $_, 2) } split(/\n/, $postgres->psql("select id || '=' || $list from $policy.$name"));
		my $replaced = 0;
		for my $i (0 .. $#rows)
		{
			my ($values, $count, %want) = @{ $rows[$i] };
			my %way = (1 => 'snapshot', 1001 => 'insert', 2001 => 'update');
			is($got{ $_ + $i }, $want{$policy}, ($number{$name} ? "$number{$name}: " : '') . "$policy, $name, row $i: $way{$_}") for sort { $a <=> $b } keys %way;
			$replaced += 4 * $count;    # copied, inserted, updated to it, updated beside it
		}
		is($of->table_status($name, 'values_replaced'), $replaced, "$policy, $name: values that were replaced");
	}

	for my $key (qw(key_date key_text key_charset))
	{
		$of->wait_for_table_state($key, 'stopped');
		is($of->table_status($key, 'last_error_sqlstate'), $key eq 'key_date' ? '22008' : '22021', "$policy, $key: a column of the key has no policy");
		like($of->table_status($key, 'last_error_hint'), qr/Columns of the key have no policy/, "$policy, $key: and the hint says so");
	}
	is($postgres->psql("select string_agg(d, ',' order by id) from $policy.own_text"), '0000-00-00,2026-05-00', "$policy: a text column has a form for zero dates");
	is($postgres->psql("select string_agg(j::text, ',' order by id) from $policy.own_json"), '"\\u0000","\\u0000"', "$policy: json has a form for NUL");
	is($of->table_status($_, 'values_replaced'), '0', "$policy, $_: nothing was replaced") for qw(own_text own_json);

	my $strict = { nulls => undef, errors => undef, infinities => '-infinity', epochs => '1970-01-01 00:00:00' }->{$policy};
	if (defined $strict) { is($postgres->psql("select d from $policy.own_strict"), $strict, "$policy: a NOT NULL column of a table that is there"); }
	else
	{
		$of->wait_for_table_state('own_strict', 'stopped');
		is($of->table_status('own_strict', 'last_error_sqlstate'), '22008', "$policy: a NOT NULL column of a table that is there stops it");
	}
	is($of->state, 'streaming', "$policy: the pipeline goes on");
}

my $not_null = q{select string_agg(attname, ',' order by attnum) from pg_attribute where attnum > 0 and attnotnull and attrelid = };
is($postgres->psql("$not_null 'nulls.dates'::regclass"), 'id', 'nulls: NOT NULL is left out of date columns');
is($postgres->psql("$not_null 'nulls.key_date'::regclass"), 'd,id', 'nulls: but not in the key');
is($postgres->psql("$not_null '$_.dates'::regclass"), 'id,d,dt,ts', "$_: NOT NULL stays") for qw(infinities epochs errors);
unlike($postgres->log_text, qr/sesame/, 'no value in the log');
unlike($postgres->log_text, qr/terminated by signal/, 'no process crashed');

done_testing();

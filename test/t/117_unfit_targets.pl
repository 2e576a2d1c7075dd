# Targets that a user made and that would lose rows in silence are refused: key columns that take two values of the source for
# the same, and tables that a crash empties.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;

# table => source type of the key, target type of the key, two values that the target's type may take for the same
my $uuid = '0b0c1a2e-7f4d-4c6b-9d11-6a2b3c4d5e6f';
my $same_uuid = "'$uuid', '{" . uc($uuid) . "}'";
my %coarse = (
	caseless => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'ci.text', q{'a', 'A'} ],
	caseless_domain => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'ci.domain', q{'a', 'A'} ],
	collated => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'text collate ci.nd', q{'a', 'A'} ],
	collated_varchar => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'varchar(50) collate ci.nd', q{'a', 'A'} ],
	collated_domain => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'ci.collated', q{'a', 'A'} ],
	blanks => [ 'char(10)', 'char(10)', q{'a', 'b'} ],
	text_uuid => [ 'varchar(50)', 'uuid', $same_uuid ],
	text_inet => [ 'varchar(50)', 'inet', q{'::1', '0:0:0:0:0:0:0:1'} ],
	text_json => [ 'varchar(50)', 'jsonb', q{'[1]', '[ 1]'} ],
	float_numeric => [ 'float', 'numeric', '1.5, 2.5' ],
);
# these keep apart what is different
my %exact = (
	wider_int => [ 'int', 'bigint', '1, 2' ],
	int_numeric => [ 'bigint unsigned', 'numeric', '1, 18446744073709551615' ],
	plain_text => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'text', q{'a', 'A'} ],
	c_text => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'text collate "C"', q{'a', 'A'} ],
	text_domain => [ 'varchar(50) character set utf8mb4 collate utf8mb4_bin', 'ci.plain', q{'a', 'A'} ],
	binary_uuid => [ 'binary(16)', 'uuid', q{x'00000000000000000000000000000001', x'00000000000000000000000000000002'} ],
	bytes => [ 'varbinary(10)', 'bytea', q{'a', 'A'} ],
	label => [ q{enum('a','b')}, 'ci.label', q{'a', 'b'} ],
	day => [ 'date', 'date', q{'2024-01-01', '2024-01-02'} ],
	moment => [ 'datetime(6)', 'timestamp', q{'2024-01-01 00:00:00.000001', '2024-01-01 00:00:00.000002'} ],
	span => [ 'time', 'interval', q{'24:00:00', '48:00:00'} ],
	bits => [ 'bit(8)', 'varbit', q{b'1', b'10'} ],
	double_double => [ 'double', 'float8', '1, 2' ],
);
my %all = (%coarse, %exact);
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create schema shop', 'create schema ci',
	# a type of a user's own that takes upper and lower case for the same, as citext does
	'create type ci.text',
	'create function ci.text_in(cstring) returns ci.text language internal immutable strict as $$textin$$',
	'create function ci.text_out(ci.text) returns cstring language internal immutable strict as $$textout$$',
	q{create type ci.text (input = ci.text_in, output = ci.text_out, like = pg_catalog.text, category = 'S', collatable = true)},
	'create cast (ci.text as pg_catalog.text) without function',
	(map {
		my ($name, $operator) = @$_;
		("create function ci.$name(ci.text, ci.text) returns boolean language sql immutable strict as \$\$ select lower(\$1::pg_catalog.text) $operator lower(\$2::pg_catalog.text) \$\$",
		"create operator ci.$operator (leftarg = ci.text, rightarg = ci.text, procedure = ci.$name)");
	} [qw(eq =)], [qw(lt <)], [qw(le <=)], [qw(gt >)], [qw(ge >=)]),
	'create function ci.compare(ci.text, ci.text) returns integer language sql immutable strict as $$ select bttextcmp(lower($1::pg_catalog.text), lower($2::pg_catalog.text)) $$',
	'create operator class ci.text_ops default for type ci.text using btree as operator 1 ci.<, operator 2 ci.<=, operator 3 ci.=, operator 4 ci.>=, operator 5 ci.>, function 1 ci.compare(ci.text, ci.text)',
	'create domain ci.domain as ci.text',
	q{create collation ci.nd (provider = icu, locale = 'und-u-ks-level2', deterministic = false)},
	'create domain ci.collated as text collate ci.nd', 'create domain ci.plain as text', q{create type ci.label as enum ('a', 'b')},
	map { "create table shop.$_ (k $all{$_}[1] primary key, v int)" } sort keys %all));
$source->sql('create database shop', map {
	("create table shop.$_ (k $all{$_}[0] not null primary key, v int)",
	 "insert into shop.$_ values " . join(', ', map { "($_, 1)" } split(/, /, $all{$_}[2])))
} sort keys %all);

# both columns of a key are named at once
$source->sql('create table shop.two (a varchar(50) not null, b varchar(50) not null, primary key (a, b))', "insert into shop.two values ('a', 'b')");
$postgres->psql('create table shop.two (a text collate ci.nd, b uuid, primary key (a, b))');
# a column that is no part of the key may be what it wants
$source->sql('create table shop.other (id int primary key, v varchar(50))', "insert into shop.other values (1, 'a')");
$postgres->psql('create table shop.other (id int primary key, v text collate ci.nd)');
# tables that do not outlive a crash, and one that begins as it should
$source->sql(map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1)") } qw(unlogged later));
$source->sql('create table shop.recollated (k varchar(50) primary key, v int)', "insert into shop.recollated values ('a', 1)");
$postgres->psql('create unlogged table shop.unlogged (id int primary key, v int)');

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
for my $table (sort(keys %coarse), 'two')
{
	is($pipeline->table_status($table, 'state'), 'stopped', "$table: refused");
	is($pipeline->table_status($table, 'last_error_sqlstate'), '42804', "$table: SQLSTATE");
	like($pipeline->table_status($table, 'last_error_detail'), qr/^Key column "\w+": type .* may take different values of the source's type .* for the same; use type \w+/, "$table: detail");
	like($pipeline->table_status($table, 'last_error_hint'), qr/ALTER TABLE/, "$table: hint");
	is($postgres->psql("select count(*) from shop.$table"), '0', "$table: nothing was copied");
}
like($pipeline->table_status('two', 'last_error_detail'), qr/"a".*\n.*"b"/, 'all columns at once');
is($pipeline->table_status($_, 'state'), 'streaming', "$_: taken") or diag($pipeline->table_status($_, 'last_error_detail')) for sort(keys %exact), 'other';
$pipeline->is_same('tables with exact keys are equal', grep { $_ ne 'binary_uuid' } sort(keys %exact), 'other');
is($postgres->psql('select count(*) from shop.binary_uuid'), '2', 'both binary keys are there');

is($pipeline->table_status('unlogged', 'state'), 'stopped', 'an unlogged target is refused');
is($pipeline->table_status('unlogged', 'last_error_sqlstate'), '42809', 'SQLSTATE');
is($pipeline->table_status('unlogged', 'last_error'), 'unlogged table "unlogged" cannot be the target of a source table', 'message');
is($pipeline->table_status('unlogged', 'last_error_hint'), 'Run ALTER TABLE shop.unlogged SET LOGGED.', 'hint');

# changed under the stream: found when the table is next opened
is($pipeline->table_status('later', 'state'), 'streaming', 'a logged one is taken');
$postgres->psql('alter table shop.later set unlogged');
$source->sql('insert into shop.later values (2, 2)');
$pipeline->wait_for_table_state('later', 'stopped', 60);
is($pipeline->table_status('later', 'last_error_sqlstate'), '42809', 'ALTER TABLE ... SET UNLOGGED later stops it too');
$postgres->psql('alter table shop.recollated alter column k type text collate ci.nd');
$source->sql(q{insert into shop.recollated values ('b', 2)});
$pipeline->wait_for_table_state('recollated', 'stopped', 60);
is($pipeline->table_status('recollated', 'last_error_sqlstate'), '42804', 'and so does a coarser collation');

done_testing();

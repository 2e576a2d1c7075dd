# D29: a column gets another type. The server converts the rows that are there and logs none of them; the target's rows become what the
# source's are, by the same conversion where it is known, else by a new copy beside the rows.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $strict = 'STRICT_ALL_TABLES';
# old type, values, new type, sql_mode of the session, how: by (converted here) or copy
my @cases = (
	[ 'int', [ 0, 1, -1, 2147483647, -2147483648 ], 'bigint', $strict, 'by' ],
	[ 'int', [ 0, 1, -1, 2147483647, -2147483648 ], 'smallint', '', 'by' ],
	[ 'int', [ 0, 1, -1, 2147483647, -2147483648 ], 'int unsigned', '', 'by' ],
	[ 'bigint unsigned', [ 0, 1, '18446744073709551615', '9223372036854775808' ], 'bigint', '', 'by' ],
	[ 'bigint unsigned', [ 0, 1, '18446744073709551615' ], 'varchar(20)', $strict, 'by' ],
	[ 'int', [ 0, -5, 2147483647 ], 'varchar(11)', $strict, 'by' ],
	[ 'int', [ 12345, -5 ], 'varchar(3)', '', 'by' ],
	[ 'int(7) zerofill', [ 5, 1234567 ], 'varchar(11)', $strict, 'copy' ],
	[ 'int', [ 0, -5, 2147483647 ], 'double', $strict, 'by' ],
	[ 'bigint', [ 0, '9223372036854775807', '9007199254740993' ], 'double', $strict, 'by' ],
	[ 'bigint', [ 0, '123456789012' ], 'float', $strict, 'copy' ],
	[ 'int', [ 0, -5, 2147483647 ], 'decimal(12,2)', $strict, 'by' ],
	[ 'int', [ 0, -5, 2147483647 ], 'decimal(5,2)', '', 'by' ],
	[ 'decimal(10,3)', [ '1.5', '2.5', '-2.5', '1.499', '0.0005', '-0.0005', '9999999.999' ], 'int', '', 'by' ],
	[ 'decimal(10,3)', [ '1.005', '2.125', '-2.125', '1.499', '0.0005', '-0.005', '9999999.999' ], 'decimal(6,2)', '', 'by' ],
	[ 'decimal(10,3)', [ '1.500', '-2.5' ], 'varchar(20)', $strict, 'by' ],
	[ 'decimal(10,3)', [ '1.500', '-2.5' ], 'decimal(12,3) unsigned', '', 'by' ],
	[ 'decimal(30,10)', [ '12345678901234567890.0123456789', '0.1' ], 'double', $strict, 'by' ],
	[ 'float', [ '1.1', '0.1', '-3.4e38', '16777217' ], 'double', $strict, 'by' ],
	[ 'double', [ '1.1', '0.1', '1.5', '2.5' ], 'int', $strict, 'copy' ],
	[ 'double', [ '1.1', '0.1', '1e20' ], 'varchar(30)', $strict, 'copy' ],
	[ 'varchar(20)', [ q{'5'}, q{'-17'}, q{'+3'}, q{'007'} ], 'int', $strict, 'by' ],
	[ 'varchar(20)', [ q{'5'}, q{'6.5'} ], 'decimal(10,2)', $strict, 'copy' ],
	[ 'varchar(20)', [ q{'5'}, q{'6.5'}, q{'1e2'} ], 'int', '', 'copy' ],
	[ 'text', [ q{'12'}, q{'13'} ], 'bigint', $strict, 'by' ],
	[ 'varchar(20)', [ q{'abc'}, q{'ab   '}, q{'ü€x'}, q{''} ], 'varchar(5)', $strict, 'by' ],
	[ 'varchar(20)', [ q{'abcdefgh'}, q{'ab  c'}, q{'ü€xyz'} ], 'varchar(3)', '', 'copy' ],    # not even the character set is known
	[ 'varchar(20)', [ q{'abc  '}, q{'ab'}, q{' '} ], 'char(10)', $strict, 'by' ],
	[ 'char(10)', [ q{'abc'}, q{''} ], 'varchar(20)', $strict, 'by' ],
	[ 'varchar(20)', [ q{'abc'}, q{' '} ], 'text', $strict, 'by' ],
	[ 'text', [ q{'abc'}, q{'  '} ], 'varchar(100)', $strict, 'by' ],
	[ 'varchar(20) character set latin1', [ q{'é'}, q{'abc'} ], 'varchar(20) character set utf8mb4', $strict, 'by' ],
	[ 'varchar(20) character set utf8mb4', [ q{'é'}, q{'€'}, q{'ž中'} ], 'varchar(20) character set latin1', '', 'copy' ],
	[ q{enum('a','b','c')}, [ q{'a'}, q{'c'} ], 'varchar(10)', $strict, 'by' ],
	[ q{enum('a','b','c')}, [ q{'a'}, q{'c'} ], q{enum('c','x','a')}, $strict, 'by' ],
	[ q{enum('a','b','c')}, [ q{'a'}, q{'c'} ], 'int', $strict, 'copy' ],
	[ q{set('a','b')}, [ q{'a,b'}, q{''} ], 'varchar(10)', $strict, 'by' ],
	[ q{set('x','y')}, [ q{'x,y'}, q{'x'} ], q{set('y','x')}, $strict, 'copy' ],
	[ q{set('x','y')}, [ q{'x,y'}, q{'x'} ], q{set('w','x','v','y')}, $strict, 'by' ],
	[ q{set('x','y','z')}, [ q{'x,z'}, q{'x'} ], q{set('x','z')}, $strict, 'by' ],
	[ q{set('x','y','z')}, [ q{'x,y,z'}, q{'x'} ], q{set('x','z')}, '', 'copy' ],
	[ 'varchar(10)', [ q{'a'}, q{'B'} ], q{enum('A','b')}, $strict, 'copy' ],
	[ 'date', [ q{'2020-02-29'}, q{'0999-01-01'} ], 'datetime', $strict, 'by' ],
	[ 'date', [ q{'2020-02-29'}, q{'0999-01-01'} ], 'varchar(10)', $strict, 'by' ],
	[ 'datetime', [ q{'2020-02-29 23:59:59'}, q{'0999-01-01 00:00:00'} ], 'date', '', 'by' ],
	[ 'datetime', [ q{'2020-02-29 23:59:59'} ], 'varchar(19)', $strict, 'by' ],
	[ 'datetime(3)', [ q{'2020-02-29 23:59:59.5'} ], 'varchar(30)', $strict, 'by' ],
	[ 'datetime(6)', [ q{'2020-02-29 23:59:59.999999'}, q{'2020-01-01 00:00:00.123456'} ], 'datetime(3)', '', 'copy' ],
	[ 'datetime', [ q{'2020-02-29 23:59:59'} ], 'timestamp', '', 'copy' ],
	[ 'timestamp(2) null', [ q{'2020-02-29 23:59:59.25'} ], 'timestamp(6) null', $strict, 'by' ],
	[ 'int', [ 20200229, 20210101 ], 'datetime', $strict, 'copy' ],
	[ 'time', [ q{'10:00:00'}, q{'-838:59:59'} ], 'varchar(20)', $strict, 'copy' ],
	[ 'year', [ 2001, 0 ], 'int', $strict, 'by' ],
	[ 'year', [ 2001, 0 ], 'varchar(4)', $strict, 'by' ],
	[ 'bit(3)', [ q{b'101'} ], 'bit(9)', $strict, 'copy' ],
	[ 'bit(3)', [ q{b'101'} ], 'int', $strict, 'copy' ],
	[ 'varbinary(5)', [ q{'abc'}, q{x'00ff'} ], 'blob', $strict, 'by' ],
	[ 'binary(3)', [ q{'abc'}, q{'a'} ], 'binary(5)', $strict, 'copy' ],
	[ 'varchar(20)', [ q{'abc'} ], 'blob', $strict, 'copy' ],
	[ 'json', [ q{'{"a": 1}'} ], 'text', $strict, 'copy' ],
);
my $n = 0;
for my $case (@cases)
{
	my ($type, $values) = @$case;
	my $table = sprintf('t%02d', $n++);
	push @$case, $table;
	$source->sql($n == 1 ? 'create database shop' : (), "create table shop.$table (id int primary key auto_increment, v $type)");
	my $dbh = $source->connect;
	$dbh->do(q{set sql_mode = ''});
	$dbh->do("insert into shop.$table (v) values " . join(', ', map { "($_)" } 'null', @$values));
	$dbh->disconnect;
}
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start->wait_for_state('streaming')->wait_for_tables;
for my $case (@cases)
{
	my ($type, $values, $new, $mode, $how, $table) = @$case;
	my $dbh = $source->connect;
	$dbh->do("set sql_mode = '$mode'");
	$dbh->do("set time_zone = '+05:00'");
	$dbh->do("alter table shop.$table modify v $new");
	$dbh->disconnect;
}
$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql(q{select string_agg(concat_ws(' ', source_table, state, last_error, last_error_detail), e'\n') from pg_stat_cdc_table where state <> 'streaming'}), '', 'D29: every table streams') or diag($pipeline->describe);
my %title = map { $_->[5] => "D29: $_->[0] to $_->[2] with sql_mode '$_->[3]'" } @cases;
$pipeline->are_same('the rows are the source\'s', \%title, map { $_->[5] } @cases);
my $log = $postgres->log_text;
my %copied = map { $_ => 1 } $log =~ /"shop\.(t\d+)" of pipeline "shop_in" is copied anew because/g;
is($copied{ $_->[5] } ? 'copy' : 'by', $_->[4], "$title{ $_->[5] }: how") for @cases;

# ---- several columns in one statement: the table is rewritten once; when one cannot be converted here, each by itself
my $strict_dbh = $source->connect;
$strict_dbh->do("set sql_mode = '$strict'");
$strict_dbh->do($_) for 'create table shop.several (id int primary key, a int, b smallint not null default 7, c decimal(6,2), d varchar(10))', q{insert into shop.several values (1, 1, 1, 1.25, '12'), (2, -2, 2, -2.5, null), (3, null, 3, null, '+13')},
	'create table shop.mixed (id int primary key, a int, b smallint, d varchar(10))', q{insert into shop.mixed values (1, 1, 1, '12'), (2, 2, 2, '13')};
$pipeline->wait_for_catchup->wait_for_tables;
$postgres->psql(<<'SQL');
create table public.rewrites (relid oid);
create function public.note_rewrite() returns event_trigger language plpgsql as 'begin insert into public.rewrites values (pg_event_trigger_table_rewrite_oid()); end';
create event trigger note_rewrite on table_rewrite execute function public.note_rewrite();
alter event trigger note_rewrite enable always;
SQL
$strict_dbh->do('alter table shop.several modify a bigint, modify b int not null default 8, modify c decimal(8,1), modify d int');
# a value that is none of this column's type here: the pipeline's target was changed by hand
$postgres->psql(q{update shop.mixed set d = 'x' where id = 1});
$strict_dbh->do('alter table shop.mixed modify a bigint, modify b int, modify d int');
$strict_dbh->do($_) for 'insert into shop.several values (4, 5000000000, 70000, 1000000.5, 14)', 'insert into shop.mixed values (3, 5000000000, 70000, 14)';
$strict_dbh->disconnect;
$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql(q{select count(*) from public.rewrites where relid = 'shop.several'::regclass}), '1', 'several columns get other types by one rewrite of the table');
like($postgres->psql(q{select commands[1] from cdc_schema_history where source_table = 'several' and kinds @> '{alter_type}'}), qr/^ALTER TABLE shop\.several ALTER COLUMN a TYPE bigint.*, ALTER COLUMN b TYPE integer.*, ALTER COLUMN c TYPE numeric\(8,1\).*, ALTER COLUMN d TYPE integer/, 'in one statement');
is($postgres->psql(q{select column_default from information_schema.columns where table_schema = 'shop' and table_name = 'several' and column_name = 'b'}), '8', 'and their defaults follow');
like($postgres->psql(q{select array_to_string(commands, '; ') from cdc_schema_history where source_table = 'mixed' and kinds @> '{alter_type}'}), qr/^ALTER TABLE shop\.mixed ALTER COLUMN a TYPE bigint[^;,]*; ALTER TABLE shop\.mixed ALTER COLUMN b TYPE integer[^;,]*; /, 'each by itself when a value cannot be converted');
$pipeline->are_same('rows of several', { several => 'several columns: rows are the source\'s', mixed => 'also where one had to be copied anew' }, qw(several mixed));
# ---- what the server computes for rows that are there
my @made = (
	[ 'another expression', 'g int as (a * 2) stored', 'modify g int as (a * 3) stored', $strict, 'copy' ],
	[ 'another expression under another name', 'g int as (a * 2) stored', 'change g h int as (a + 1) stored', $strict, 'copy' ],
	[ 'values that are rounded', 'g decimal(12,2) as (d * 2) stored', 'modify d decimal(10,1)', $strict, 'copy' ],
	[ 'numbers of another form', 'g varchar(30) as (concat(d)) virtual', 'modify d decimal(10,4)', $strict, 'copy' ],
	[ 'no NULL any more', 'g int as (ifnull(a, 7)) stored', 'modify a int not null', '', 'copy' ],
	[ 'another character set', 'g int as (length(t)) virtual', 'modify t varchar(20) character set utf16', $strict, 'copy' ],
	[ 'wider', 'g int as (ifnull(a, 7) * 2) stored', 'modify a bigint', $strict, 'by' ],
	[ 'a column more', 'g int as (ifnull(a, 7) * 2) stored', 'add n int default 5', $strict, 'by' ],
	[ 'nothing is lost', 'g int as (length(t)) stored', q{modify d decimal(10,2) not null default 0, comment 'x'}, $strict, 'by' ],
	[ 'a time for NULL', 'g int as (a * 2) stored, ts timestamp null', 'modify ts timestamp not null', '', 'copy' ],
	[ 'no time for NULL', 'ts timestamp null', 'modify ts timestamp not null', '', 'copy' ],
	[ 'no NULL to be made a date', 'dt date', 'modify dt date not null', '', 'by', 'update shop.%s set dt = current_date' ],
);
$n = 0;
for my $case (@made)
{
	my ($what, $columns, undef, undef, undef, $more) = @$case;
	my $table = sprintf('g%02d', $n++);
	$case->[5] = $table;
	my $dbh = $source->connect;
	$dbh->do($_) for "create table shop.$table (id int primary key, a int, d decimal(10,2), t varchar(20) character set latin1, $columns)",
	  "insert into shop.$table (id, a, d, t) values (1, 1, 1.26, 'é'), (2, " . ($what =~ /NULL/ ? 'null' : 2) . ", 2.55, 'ab')";
	$dbh->do(sprintf $more, $table) if $more;
	$dbh->disconnect;
}
$pipeline->wait_for_catchup->wait_for_tables;
for my $case (@made)
{
	my ($what, undef, $clause, $mode, undef, $table) = @$case;
	my $dbh = $source->connect;
	$dbh->do("set sql_mode = '$mode'");
	$dbh->do("alter table shop.$table $clause");
	$dbh->disconnect;
}
$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql(q{select string_agg(concat_ws(' ', source_table, state, last_error, last_error_detail), e'\n') from pg_stat_cdc_table where state <> 'streaming'}), '', 'generated columns: every table streams') or diag($pipeline->describe);
$pipeline->are_same('rows of generated columns', { map { $_->[5] => "generated columns, $_->[0]: the rows are the source's" } @made }, map { $_->[5] } @made);
%copied = map { $_ => 1 } $postgres->log_text =~ /"shop\.(g\d+)" of pipeline "shop_in" is copied anew because/g;
is($copied{ $_->[5] } ? 'copy' : 'by', $_->[4], "generated columns, $_->[0]: how") for @made;
is($postgres->psql(q{select array_to_string(kinds, ',') from cdc_schema_history where source_table = 'g00' and 'alter_type' = any (kinds)}), 'alter_type', 'and the history has it');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

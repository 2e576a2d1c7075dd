# What is not built, or not wanted (schema_changes "exception"), stops the table it concerns, with a named state and a hint, before anything of it is applied; the other
# tables go on.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;

my %case = (
	statement => sub { return ("set session binlog_format = 'STATEMENT'", 'insert into shop.statement values (10, 10)', "set session binlog_format = 'ROW'"); },
	added => sub { return ('alter table shop.added add column w int', 'insert into shop.added values (10, 10, 10)'); },
	modified => sub { return ('alter table shop.modified modify column v bigint', 'insert into shop.modified values (10, 10)'); },
	truncated => sub { return ('truncate table shop.truncated', 'insert into shop.truncated values (10, 10)'); },
	dropped => sub { return ('drop table shop.dropped'); },
	renamed => sub { return ('rename table shop.renamed to shop.renamed_away'); },
	no_metadata => sub {
		return ("set global binlog_row_metadata = 'MINIMAL'", 'flush tables', 'insert into shop.no_metadata values (10, 10)', "set global binlog_row_metadata = 'FULL'", 'flush tables');
	},
);
# An own ALTER that changes no shape, and DDL of tables that nobody mirrors, or of none, are harmless.
my @harmless = ("create user somebody identified by 'pass word'", "grant select on shop.* to somebody", 'flush tables',
	'create procedure shop.p() begin alter table bystander drop v; truncate bystander; end',
	'create table shop.created_later (id int primary key)', 'create index added_v on shop.bystander (v)', 'analyze table shop.bystander',
	'create database elsewhere', 'create table elsewhere.t (id int primary key)', 'drop table elsewhere.t', 'create view elsewhere.v as select 1');

my @tables = sort keys %case;
$source->sql('create database shop', 'create table shop.bystander (id int primary key, v int)', 'insert into shop.bystander values (1, 1)');
for (@tables)
{
	$source->sql("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1), (2, 1)");
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"schema_changes": "exception"}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('the snapshot');

my $bystander = 1;
for my $table (@tables)
{
	my $before = $postgres->psql("select id, v from shop.$table order by id");
	my $dbh = $source->connect;
	$dbh->do($_) for $case{$table}->();
	$bystander++;
	$source->sql("insert into shop.bystander values ($bystander, $bystander)");
	eval { $pipeline->wait_for_table_state($table, 'stopped', 60) } or diag($@);
	is($pipeline->table_status($table, 'state'), 'stopped', "$table: the table is stopped");
	isnt($pipeline->table_status($table, 'last_error'), '', ($table eq 'no_metadata' ? 'D27: ' : '') . "$table: the view says why");
	ok($postgres->poll("select count(*) from shop.bystander where id = $bystander", '1', 60), "$table: another table goes on");
	is($postgres->psql("select id, v from shop.$table order by id"), $before, "$table: nothing of it was applied");
	is($pipeline->state, 'streaming', "$table: the pipeline streams");
	my $hint = $pipeline->table_status($table, 'last_error_hint');
	for my $function ($hint =~ /\b(cdc_\w+)\s*\(/g)
	{
		isnt($postgres->psql("select count(*) from pg_proc where proname = '$function'"), '0', "$table: $function, named by the hint, exists");
	}
}

$source->sql($_) for @harmless;
$source->sql('insert into shop.bystander values (1000, 1000)');
ok($postgres->poll('select count(*) from shop.bystander where id = 1000', '1', 60), 'D24: harmless statements stop nothing');
is($pipeline->table_status('bystander', 'state'), 'streaming', 'the table beside is still streaming');
$pipeline->wait_for_catchup;
$pipeline->is_same('the table beside is equal at the end', 'bystander');

# a stopped table stays stopped over a restart
$postgres->restart;
$pipeline->wait_for_state('streaming');
is($pipeline->table_status('truncated', 'state'), 'stopped', 'a stopped table stays so over a restart');

done_testing();

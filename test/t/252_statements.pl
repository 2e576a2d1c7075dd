# Statements in the log instead of rows: which sessions may choose (binlog_format, LOAD DATA). The tables that a statement names stop, with
# a way out; all tables where it does not tell; the children of what it names, for foreign keys are in no log then. Statements about
# other tables are ignored.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create database elsewhere', 'create table elsewhere.parent (id int primary key)', 'create table elsewhere.t (id int primary key, v int)',
	'insert into elsewhere.parent values (1), (2), (3)', (map { "create table shop.$_ (id int primary key, v int)" } qw(a b)),
	'create table shop.child (id int primary key, pid int, foreign key (pid) references elsewhere.parent (id) on delete cascade)',
	'insert into shop.a values (1, 1), (2, 2)', 'insert into shop.b values (1, 1), (2, 2)', 'insert into shop.child values (1, 1), (2, 2), (3, 3)',
	'create function elsewhere.f() returns int deterministic modifies sql data begin insert into shop.a values (100, 100); return 1; end');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
sub stopped { return $postgres->psql(q{select coalesce(string_agg(source_table, ',' order by source_table), '') from pg_stat_cdc_table where state = 'stopped'}); }

# Run statements in a session that logs statements; say which tables have to stop; copy them anew.
sub run
{
	my ($name, $want, @statements) = @_;
	my $dbh = $source->connect;
	$dbh->do($_) for q{set session binlog_format = 'STATEMENT'}, @statements;
	$dbh->disconnect;
	if ($want eq 'a,b,child')
	{
		$pipeline->wait_for_state('failed', 60);
		is($pipeline->status('last_error'), 'all tables of pipeline "shop_in" are stopped', "$name: the pipeline has nothing left to do");
	}
	elsif ($want ne '')
	{
		$pipeline->wait_for_table_state($_, 'stopped') for split(/,/, $want);
	}
	$source->sql('insert into elsewhere.t values (floor(rand() * 1000000000), 1)');
	$pipeline->wait_for_catchup if $want ne 'a,b,child';
	is(stopped(), $want, "$name: " . ($want eq '' ? 'no table stops' : "$want stopped"));
	for my $table (split(/,/, $want))
	{
		is($pipeline->table_status($table, 'last_error_sqlstate'), 'YC005', "$name: $table says why") or diag($pipeline->table_status($table, 'last_error'));
		like($pipeline->table_status($table, 'last_error_hint'), qr/binlog_format = 'ROW'.*cdc_resync_table\(\)/, "$name: and the way out");
		$postgres->psql("select cdc_resync_table('shop_in', 'shop.$table')");
	}
	$pipeline->start if $want eq 'a,b,child';
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$pipeline->is_same("$name: equal again");
	return;
}

run('INSERT', 'a', 'insert into shop.a values (10, 10)');
run('UPDATE with an alias', 'a', 'update shop.a as x set x.v = 11 where id = 10');
run('statements in a transaction', 'a,b', 'begin', 'replace into shop.a values (10, 12)', 'delete from shop.b where id = 1', 'commit');
run('UPDATE of several tables', 'a,b', 'update shop.a, shop.b set shop.a.v = 13, shop.b.v = 13 where shop.a.id = shop.b.id');
run('default schema', 'b', 'use shop', 'insert into b select id + 50, v from a');
run('tables of others', '', 'insert into elsewhere.t values (1, 1)', 'insert into elsewhere.t select id + 10, v from shop.a', 'update elsewhere.t set v = 2', 'delete from elsewhere.t where id = 1', 'create table elsewhere.made as select * from shop.a');
run('a parent of others', 'child', 'delete from elsewhere.parent where id = 2');
run('a function', 'a,b,child', 'do elsewhere.f()') if $source->is_mariadb;

done_testing();

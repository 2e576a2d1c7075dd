# D18: a source that keeps names in lower case, whatever the statements write; and one that tells tables apart by case.
# cells: mariadb-15

use strict;
use warnings;
use utf8;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Encode qw(encode_utf8);
use Test::More;

my $postgres = CdcBridge::Postgres->new;
for my $folds (1, 0)
{
	my $source = CdcBridge::Source->new(args => ["--lower-case-table-names=$folds"]);
	my $schema = "shop$folds";
	my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => "in_$folds", server => $schema, schema => $schema)->setup;
	my $settle = sub { $pipeline->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; };
	my $tables = sub { return $postgres->psql(qq{select string_agg(source_table || '>' || target_table, ' ' order by source_table collate "C") from pg_stat_cdc_table where pipeline = 'in_$folds' and state = 'streaming'}); };
	$source->sql("create database $schema", "create table $schema.orders (id int primary key, v int)", "insert into $schema.orders values (1, 1)");
	$pipeline->start->wait_for_state('streaming')->wait_for_tables;
	$source->sql("create table $schema.Fresh (id int primary key, v int)", "insert into $schema.Fresh values (1, 1)", "rename table $schema.orders to $schema.Orders_New", encode_utf8("create table $schema.Größe (id int primary key, v int)"),
		"insert into $schema.Orders_New values (2, 2)", encode_utf8("insert into $schema.`Größe` values (3, 3)"));
	$settle->();
	is($tables->(), encode_utf8($folds ? 'fresh>fresh größe>größe orders_new>orders_new' : 'Fresh>Fresh Größe>Größe Orders_New>Orders_New'), "D18: lower_case_table_names $folds: tables that are made and renamed have the names that the server keeps")
	  or diag($pipeline->describe);
	$source->sql("truncate table $schema." . ($folds ? 'FRESH' : 'Fresh'), "rename table $schema." . ($folds ? 'ORDERS_NEW' : 'Orders_New') . " to $schema.fResH2", "insert into $schema.fResH2 values (4, 4)");
	$settle->();
	my $target = $folds ? 'fresh2' : 'fResH2';
	is($postgres->psql(qq{select string_agg(id::text, ' ' order by id) from $schema."$target"}), '1 2 4', "D18: $folds: rows of before and after");
	is($postgres->psql(qq{select count(*) from $schema."} . ($folds ? 'fresh' : 'Fresh') . '"'), '0', "D18: $folds: TRUNCATE, however it is written");
	if (!$folds)
	{
		$source->sql("create table $schema.TWO (id int primary key)", "create table $schema.two (id int primary key)", "insert into $schema.TWO values (1)", "insert into $schema.two values (2)", "truncate table $schema.TWO");
		$settle->();
		is($postgres->psql(qq{select (select count(*) from $schema."TWO"), (select id from $schema.two)}), '0|2', 'D18: two tables whose names differ by case');
		$source->sql("drop table $schema.two");
		$settle->();
		is($postgres->psql(qq{select to_regclass('$schema."TWO"'), to_regclass('$schema.two')}), qq{$schema."TWO"|}, 'D18: one of them is dropped');
	}
	$source->sql("drop table $schema." . ($folds ? 'FrEsH2' : 'fResH2'));
	$settle->();
	is($postgres->psql(qq{select to_regclass('$schema."$target"')}), '', "D18: $folds: DROP");
	$pipeline->stop->drop;
}
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

# D32: indexes of a source table come, go and change while it streams: the target's follow, built beside the stream; a unique index that went
# keeps no row out.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, a int, b varchar(20), c text, unique index one (a), index two (b), index three (a, b))',
	q{insert into shop.t values (1, 1, 'x', 'x'), (2, 2, 'y', 'y')}, 'create table shop.own (id int primary key, a int, index two (a))', 'insert into shop.own values (1, 1)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
$pipeline->setup;
$postgres->psql('create schema shop; create table shop.own (id int primary key, a int)');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;

sub indexes
{
	my ($table) = @_;
	return join(' ', sort split(/\n/, $postgres->psql(qq{select regexp_replace(pg_get_indexdef(indexrelid), '^CREATE (UNIQUE )?INDEX .* USING btree ', '\\1') from pg_index where indrelid = 'shop.$table'::regclass and not indisprimary and indisvalid})));
}
sub built
{
	my ($name, $wanted) = @_;
	$postgres->poll(q{select count(*) from pg_stat_cdc_index where state in ('wanted', 'building')}, '0') or diag($pipeline->describe);
	is(indexes('t'), $wanted, $name) or diag($postgres->psql('select * from pg_stat_cdc_index'));
	return;
}
built('as the table was made', '(a, b) (b) UNIQUE (a)');
$source->sql('create index four on shop.t (id, a)', 'alter table shop.t add unique index five (b, a)');
$pipeline->wait_for_catchup;
built('D32: indexes that come are built', '(a, b) (b) (id, a) UNIQUE (a) UNIQUE (b, a)');
$source->sql('alter table shop.t drop index one', q{insert into shop.t values (3, 1, 'z', 'z')}, 'drop index two on shop.t');
$pipeline->wait_for_catchup;
$pipeline->is_same('D32: a unique index that went keeps no row out', 't');
built('and is gone', '(a, b) (id, a) UNIQUE (b, a)');
$source->sql('alter table shop.t drop index four, add index four (b), change a aa int, add index six (c(10)), add fulltext index seven (c)');
$pipeline->wait_for_catchup;
built('D32: another index of the same name, a column with another name', '(aa, b) (b) UNIQUE (b, aa)');
like($postgres->psql(q{select string_agg(source_index || ': ' || reason, ' ' order by source_index collate "C") from pg_stat_cdc_index where source_table = 't' and state = 'left_out'}), qr/seven: .+six: .+/, 'D32: what has no counterpart is told') or diag($postgres->psql('select * from pg_stat_cdc_index'));
$source->sql('alter table shop.t drop index five, drop aa', q{insert into shop.t values (4, 'w', 'w')});
$pipeline->wait_for_catchup;
$pipeline->is_same('D32: a column of indexes goes', 't');
is($pipeline->table_status('t', 'state'), 'streaming', 'the table streams');
$source->sql('alter table shop.own add index eight (id, a)');
$pipeline->wait_for_catchup;
is(indexes('own'), '', 'a target that was there before the pipeline gets none');
like($postgres->psql(q{select string_agg(distinct kinds::text, ' ') from cdc_schema_history}), qr/index/, 'the history has them');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

# With schema_changes lenient the target keeps rows that a statement of the source removed. Nothing takes them away by itself later: a change that
# wants a new copy stops the table, until somebody asks for the copy.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my @tables = qw(emptied parted calm);
push @tables, 'replaced' if $source->is_mariadb;
$source->sql('create database shop', (map { "create table shop.$_ (id int primary key, a int)" . ($_ eq 'parted' ? ' partition by range (id) (partition p0 values less than (3), partition p1 values less than (100))' : '') } @tables),
	map { "insert into shop.$_ values (1, 11), (2, 22), (3, 33)" } @tables);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"schema_changes": "lenient"}')->setup->start->wait_for_state('streaming')->wait_for_tables;
my $rows = sub { my ($table, $columns) = @_; return $postgres->psql(qq{select string_agg(concat_ws(':', $columns), ' ' order by id) from shop.$table}); };

$source->sql('truncate table shop.emptied', 'alter table shop.parted truncate partition p0', $source->is_mariadb ? 'create or replace table shop.replaced (id int primary key, q int)' : (), 'insert into shop.emptied values (4, 44)', 'insert into shop.parted values (2, 222)');
$pipeline->wait_for_catchup;
is($rows->('emptied', 'id, a'), '1:11 2:22 3:33 4:44', 'TRUNCATE: the rows are kept');
is($rows->('parted', 'id, a'), '1:11 2:222 3:33', 'TRUNCATE PARTITION: too, and a row that comes again takes its place');
$source->sql('alter table shop.emptied add b int default 5', 'insert into shop.emptied values (5, 55, 6)');
$pipeline->wait_for_catchup;
is($rows->('emptied', 'id, a, b'), '1:11:5 2:22:5 3:33:5 4:44:5 5:55:6', 'a change that needs no copy is followed');

# what only a new copy brings
$source->sql('alter table shop.emptied add g int as (id * 2) stored', 'alter table shop.parted add g int as (id * 2) stored', $source->is_mariadb ? 'insert into shop.replaced values (1, 1)' : (), 'alter table shop.calm add g int as (id * 2) stored', 'insert into shop.calm (id, a) values (4, 44)');
my @kept = grep { $_ ne 'calm' } @tables;
$pipeline->wait_for_table_state($_, 'stopped') for @kept;
$pipeline->wait_for_table_state('calm', 'streaming')->wait_for_catchup;
ok(poll_until(sub { return $pipeline->same_rows('calm'); }), 'a table that keeps nothing is copied anew') or diag($pipeline->{difference});
for my $table (@kept)
{
	is($pipeline->table_status($table, 'last_error_sqlstate'), 'YC004', "$table: it stops");
	like($pipeline->table_status($table, "last_error_detail || ' ' || last_error_hint"), qr/keeps rows that a statement of the source removed.*Save the rows that you want to keep, then use cdc_resync_table\(\)/, 'says why, and what to do');
	is($postgres->psql("select count(*) >= 3 from shop.$table"), 't', 'and its rows are there');
}
is($rows->('emptied', 'id, a'), '1:11 2:22 3:33 4:44 5:55', 'all of them');
$pipeline->stop->start->wait_for_state('streaming');
is($postgres->psql(q{select string_agg(source_table, ' ' order by source_table) from pg_stat_cdc_table where state = 'stopped'}), join(' ', sort @kept), 'also over a restart');

# asked for
$postgres->psql("select cdc_resync_table('shop_in', 'shop.$_')") for @kept;
$pipeline->wait_for_table_state($_, 'streaming') for @kept;
$source->sql('insert into shop.emptied (id, a) values (6, 66)');
$pipeline->wait_for_catchup;
ok(poll_until(sub { return $pipeline->same_rows(qw(emptied parted)); }), 'copied anew by hand: as the source') or diag($pipeline->{difference});
$source->sql('alter table shop.emptied add h int as (id * 3) stored');
$pipeline->wait_for_catchup->wait_for_table_state('emptied', 'streaming');
ok(poll_until(sub { return $pipeline->same_rows('emptied'); }), 'and by itself from then on') or diag($pipeline->{difference});
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

# With schema_changes "lenient" a table is copied anew after its projection was altered: what the projection makes is new in all rows, and only
# columns that rows come without keep what they had.
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
sub options { my ($projection) = @_; return qq[{"schema_changes": "lenient", "transforms": [{"tables": "shop.t", "projection": "$projection"}]}]; }
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => options('*, price * 2 AS total'))->setup;
$source->sql('create database shop', 'create table shop.t (id int primary key, price int, note varchar(9), gone varchar(9))', q{insert into shop.t values (1, 10, 'a', 'x'), (2, 20, 'b', 'y')});
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$source->sql('alter table shop.t drop column gone');
$pipeline->wait_for_catchup;
my $rows = q{select string_agg(concat_ws(' ', id, price, note, gone, total), ', ' order by id) from shop.t};
is($postgres->psql($rows), '1 10 a x 20, 2 20 b y 40', 'the target keeps a column that the source drops');

$pipeline->stop;
$postgres->psql("select cdc_alter_pipeline('shop_in', options => '" . options('id, price, price * 3 AS total') . "')");
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.t')});
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
poll_until(sub { $postgres->log_text =~ /new copy of table "shop\.t" is in place/ }) or diag($pipeline->describe);
is($postgres->psql($rows), '1 10 a x 30, 2 20 b y 60', 'what is computed is new, and columns that rows come without stay as they were') or diag($pipeline->describe);
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

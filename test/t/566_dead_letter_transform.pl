# R8: an expression of a transform that fails for one row makes a dead letter of that row, in the copy and in the stream, and stops
# nothing. With other expressions the letters are replayed.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 },
	options => '{"on_error": "dead_letter", "transforms": [{"tables": "shop.orders", "projection": "id, total / pieces AS price, code::smallint AS code, cdc_operation AS operation, cdc_commit_time IS NULL AS is_copy", "filter": "left(name, 1)::text <> \'-\' AND 100 / total > 0"}]}')->setup;
$source->sql('create database shop', 'create table shop.orders (id int primary key, total int not null, pieces int, code varchar(20), name varchar(20) character set utf8mb4)',
	q{insert into shop.orders values (1, 10, 2, '7', 'ä'), (2, 20, 0, '7', 'b'), (3, 30, 3, '99999', 'c'), (4, 0, 1, '1', 'd'), (5, 50, 5, 'five', 'é'), (6, 60, null, '6', '-skip')},
	'create table shop.fine (id int primary key)');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
is($pipeline->status('tables_stopped'), '0', 'R8: no table is stopped') or diag($pipeline->describe);
sub target { return $postgres->psql("select id, price, code, operation, is_copy from shop.orders order by id"); }
sub letters { return $postgres->psql(q{select string_agg(operation || ' ' || coalesce(after->>'id', before->>'id') || ' ' || state || ' ' || error_sqlstate, ', ' order by dead_letter_id) from cdc_dead_letters}); }
is(target(), '1|5|7|copy|t', 'R8: the good row of the copy');
is(letters(), 'snapshot 2 waiting 22012, snapshot 3 waiting 22003, snapshot 4 waiting 22012, snapshot 5 waiting 22P02', 'R8: division by zero, overflow of a cast, a filter that fails, a text that is no number');
is($postgres->psql(q{select after from cdc_dead_letters where after->>'id' = '5'}), '{"id": "5", "code": "five", "name": "é", "total": "50", "pieces": "5"}', 'R8: the letter has the row of the source, not what was made of it');

is($postgres->psql(q{select error_detail from cdc_dead_letters where after->>'id' in ('2', '4') order by dead_letter_id}), qq{It was thrown in transform column "price".\nIt was thrown in transform filter.}, 'R8: and names the expression');

$source->sql('insert into shop.fine values (1)', q{insert into shop.orders values (10, 100, 10, '1', 'ok')}, q{insert into shop.orders values (11, 100, 0, '1', 'bad')}, q{update shop.orders set pieces = 0 where id = 10},
	q{update shop.orders set pieces = 4 where id = 2}, 'insert into shop.fine values (2)');
$pipeline->wait_for_catchup;
is($pipeline->status('tables_stopped'), '0', 'R8: nor in the stream');
is($postgres->psql('select id, price, operation from shop.orders order by id'), "1|5|copy\n2|5|update\n10|10|insert", 'R8: what fails leaves the row as it was, what no longer fails arrives');
is(letters(), 'snapshot 2 superseded 22012, snapshot 3 waiting 22003, snapshot 4 waiting 22012, snapshot 5 waiting 22P02, insert 11 waiting 22012, update 10 waiting 22012', 'R8: and the others are kept');
$pipeline->is_same('other tables go on', 'fine');

$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"transforms": [{"tables": "shop.orders", "projection": "id, total / nullif(pieces, 0) AS price, CASE WHEN code ~ ''^[0-9]{1,4}$'' THEN code::smallint END AS code, cdc_operation AS operation, cdc_commit_time IS NULL AS is_copy", "filter": "total > 0"}]}')});
my $request = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
ok($postgres->poll("select state || ' ' || settled || ' ' || failed from cdc_dead_letter_requests where request = $request", 'done 5 0'), 'with expressions that bear them the letters are replayed')
  or diag(letters(), $postgres->psql("select * from cdc_dead_letter_requests where request = $request"));
is(target(), "1|5|7|copy|t\n2|5|7|update|f\n3|10||copy|t\n5|10||copy|t\n10||1|update|f\n11||1|insert|f", 'as if they had come now: the filter too, and what they tell of their change');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();

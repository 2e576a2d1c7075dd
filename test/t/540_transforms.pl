# Option transforms: projections, masks, filters, metadata and keys, by the copy and by the stream; what is refused, and the examples of
# docs/transforms.md.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop');

# Rows of a query at the source and of one here, as text; '~' stands for NULL.
sub there { return join("\n", map { join('|', map { $_ // '~' } @$_) } $source->query_rows($_[0])); }
sub here { my $rows = $postgres->psql("select coalesce(string_agg(r, e'\\n' order by n), '') from (select row_number() over () as n, array_to_string(array[$_[0]]::text[], '|', '~') as r from (select * from $_[1]) t) t"); return $rows; }

$source->sql('create database shop', sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user),
	'create table shop.orders (id int primary key, customer varchar(40) not null, email varchar(80), price decimal(10,2), quantity int not null, status varchar(10) not null, note text)',
	q{insert into shop.orders values (1, 'ann', 'ann@x', 2.50, 4, 'paid', 'n1'), (2, 'bob', 'bob@x', 1.00, 1, 'draft', null), (3, 'cid', null, null, 9, 'paid', 'n3'), (4, 'dan', 'dan@x', 7.25, 2, 'sent', null)},
	'create table shop.part_1 (id int, sub int, v varchar(20), primary key (id, sub))',
	'create table shop.part_2 (id int, sub int, v varchar(20), primary key (id, sub))',
	q{insert into shop.part_1 values (1, 1, 'a'), (1, 2, 'b')}, q{insert into shop.part_2 values (1, 1, 'c')},
	'create table shop.log (at int, line varchar(40))', q{insert into shop.log values (1, 'keep x'), (1, 'keep x'), (2, 'drop y')},
	'create table shop.plain (id int primary key, v varchar(20))', q{insert into shop.plain values (1, 'p')});
$pipeline->{options} = q({"transforms": [
	{"tables": "shop.orders", "projection": "*, price * quantity AS total, reverse(email) AS email, upper(customer) AS who", "filter": "status <> 'draft'", "description": "no addresses, no drafts"},
	{"tables": ["shop.part_*"], "projection": "v, cdc_table AS shard, id AS number, sub + 100 AS sub, sub AS raw, cdc_operation AS op, cdc_commit_time AS at, cdc_position AS place, cdc_schema, cdc_server", "key": ["shard", "number", "sub"]},
	{"tables": ["shop.*", "!shop.plain"], "projection": "line, length(line) AS chars", "filter": "line LIKE 'keep%'"}]});
$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables;

my $orders_there = q{select id, customer, reverse(email), price, quantity, status, note, price * quantity, upper(customer) from shop.orders where status <> 'draft' order by id};
sub check_orders
{
	my ($when) = @_;
	$pipeline->wait_for_catchup;
	is(here('id, customer, email, price, quantity, status, note, total, who', 'shop.orders order by id'), there($orders_there), "orders: $when") or diag($pipeline->describe);
	return;
}
check_orders('the copy');
is(here('line, chars', 'shop.log order by line, chars'), there(q{select line, length(line) from shop.log where line like 'keep%' order by line}), 'a table without a key: the copy');
is(here('v, shard, number, sub, op, at, place, cdc_schema, cdc_server', 'shop.part_1 order by sub'), "a|part_1|1|101|copy|~|~|shop|shop\nb|part_1|1|102|copy|~|~|shop|shop", 'metadata of copied rows');
is(here('id, v', 'shop.plain'), '1|p', 'a table that no rule names');
is($postgres->psql(q{select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ', ' order by attnum) from pg_attribute where attrelid = 'shop.orders'::regclass and attnum > 0}),
	'id integer!, customer character varying(40)!, email text, price numeric(10,2), quantity integer!, status character varying(10)!, note text, total numeric, who text', 'the table that was made for it');
is($postgres->psql(q{select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'shop.part_2'::regclass and contype = 'p'}), 'PRIMARY KEY (shard, number, sub)', 'and its key');

# ---- the stream: rows that come in, leave, come back, change their key
$source->sql(q{insert into shop.orders values (5, 'eve', 'e@x', 1, 1, 'paid', 'x'), (6, 'fay', 'f@x', 2, 2, 'draft', 'y'), (7, 'gus', 'g@x', 3, 3, 'draft', 'z')});
check_orders('inserts');
$source->sql(q{update shop.orders set status = 'draft' where id in (1, 5)}, q{update shop.orders set status = 'paid' where id in (2, 6)}, q{update shop.orders set note = 'changed' where id in (3, 7)});
check_orders('rows leave and come in');
$source->sql(q{update shop.orders set id = id + 10}, q{delete from shop.orders where id in (17, 14)}, q{update shop.orders set status = 'paid', email = 'new' where id = 11});
check_orders('keys change, rows that are not here are deleted, one comes back');
$source->sql('start transaction', q{insert into shop.orders values (20, 'h', 'h@x', 1, 1, 'paid', null)}, q{update shop.orders set status = 'draft' where id = 20}, q{insert into shop.orders values (21, 'i', 'i@x', 1, 1, 'draft', null)},
	q{update shop.orders set status = 'paid' where id = 21}, 'delete from shop.orders where id = 20', q{insert into shop.orders values (20, 'j', null, null, 3, 'sent', '')}, 'commit');
check_orders('in and out within one transaction');
is($pipeline->table_status('orders', 'conflicts'), '0', 'none of this is a conflict');
$source->sql(q{insert into shop.log values (3, 'keep z'), (4, 'drop z')}, q{delete from shop.log where at = 1 limit 1}, q{update shop.log set line = 'keep y' where line = 'drop y'}, q{update shop.log set line = 'drop 3' where at = 3}, q{update shop.log set at = 9 where line like 'drop%'});
$pipeline->wait_for_catchup;
is(here('line, chars', 'shop.log order by line, chars'), there(q{select line, length(line) from shop.log where line like 'keep%' order by line}), 'a table without a key: the stream');
is($pipeline->table_status('log', 'conflicts'), '0', 'and without a conflict');
$source->sql(q{update shop.part_1 set v = 'A' where sub = 1}, q{insert into shop.part_2 values (2, 2, 'd')}, q{delete from shop.part_1 where sub = 2});
$pipeline->wait_for_catchup;
is(here(q{v, shard, number, sub, op, at > now() - interval '1 hour' and at < now() + interval '1 minute', place ~ '^[^:]+:[0-9]+$'}, 'shop.part_1 order by sub'), 'A|part_1|1|101|update|true|true', 'metadata of streamed rows');
is(here('v, number, sub, op', 'shop.part_2 order by number'), "c|1|101|copy\nd|2|102|insert", 'of the other shard');

# ---- row by row
$pipeline->stop;
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"collapse": "off"}')});
$pipeline->start->wait_for_state('streaming');
$source->sql(q{update shop.orders set status = case status when 'paid' then 'draft' else 'paid' end}, q{delete from shop.orders where id = 12}, q{update shop.orders set id = 30, status = 'paid' where id = 13});
check_orders('without collapsing');
is($pipeline->table_status('orders', 'conflicts'), '0', 'and without a conflict');

# ---- cdc_verify() computes the rows once more
$pipeline->is_verified('all of them are compared through the transform');
$postgres->psql(q{update shop.orders set total = 0 where id = 30; update shop.orders set id = 99 where id = 20; insert into shop.orders values (2, 'x', 'x', 1, 1, 'x'); delete from shop.log where chars > 5; insert into shop.log values ('drop', 4);
	update shop.part_2 set v = 'e' where number = 2; update shop.part_1 set op = 'none', at = null, place = ''});
$source->sql(q{insert into shop.orders values (97, 'k', 'k', 1, 1, 'draft', null)});
$pipeline->wait_for_catchup;
$postgres->psql(q{insert into shop.orders values (97, 'k', 'k', 1, 1, 'draft', null, 1, 'K')});
my $gone = there(q{select count(*) from shop.log where line like 'keep%'});
is($pipeline->verify =~ s/^(log: \w+ )\{.*/$1~/mgr, <<"END", 'what differs is found: what is true of a change is not compared');
log: $gone missing, 1 extra, 0 different, 0 unsettled, done
orders: 1 missing, 3 extra, 1 different, 0 unsettled, done
part_2: 0 missing, 0 extra, 1 different, 0 unsettled, done
log: extra ~
${\ ("log: missing ~\n" x $gone)}orders: different {30} {total}
orders: extra {2}
orders: extra {97}
orders: extra {99}
orders: missing {20}
part_2: different {part_2,2,102} {v}
END
like($pipeline->verify_mode('count', 'orders'), qr/^orders: .*failed: rows of table "orders" cannot be compared by their number/, 'rows under a filter are not counted');
is($pipeline->verify_mode('count', 'part_1'), '', 'others are');
is((() = $pipeline->verify_mode('sample', 'orders') =~ /^orders: \w+ \{/mg), 5, 'a sample under a filter is all of it');

done_testing();

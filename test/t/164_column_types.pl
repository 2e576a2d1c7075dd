# Option column_types: targets are made with the types that the user chose, the most specific pattern first, and values come the same in
# snapshot and stream; a type that cannot hold the column keeps its table out, with the reason.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop',
	q{create table shop.orders (id int unsigned auto_increment primary key, is_paid tinyint(1) not null default 1, status varchar(40), flags int default 5,
		is_flags int, at datetime(6), total decimal(10,2) default 1.5)},
	q{create table shop.items (id int primary key, is_new tinyint(1), status enum('new', 'old'), code binary(16))},
	q{create table shop.odd (id int primary key, flags blob)},
	q{create table shop.bad_key (code varchar(20) primary key, v int)},
	q{create table shop.narrow (id int primary key, v bigint)},
	q{insert into shop.orders values (1, 1, 'open', 7, 3, '2020-01-02 03:04:05.678', 10.25), (2, 0, null, null, null, null, null)},
	q{insert into shop.items values (1, 1, 'new', '0123456789abcdef'), (2, null, null, null)},
	q{insert into shop.odd values (1, 'x')}, q{insert into shop.bad_key values ('a', 1)}, q{insert into shop.narrow values (1, 1)});
$postgres->psql('create domain public.amount as numeric(12, 2); create collation public.ci (provider = icu, locale = $$und-u-ks-level2$$, deterministic = false); create domain public.citext_like as text collate public.ci');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => q({"column_types": {
	"*.*.is_*": "boolean", "*.*.is_flags": "text", "shop.orders.flags": "bigint", "shop.*.status": "varchar(20)", "shop.items.status": "text",
	"shop.orders.at": "timestamptz", "shop.orders.total": "public.amount", "shop.items.code": "uuid", "shop.odd.flags": "integer",
	"shop.bad_key.code": "public.citext_like", "shop.narrow.v": "integer"}}))->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
my $types = sub {
	return $postgres->psql("select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute where attrelid = 'shop.$_[0]'::regclass and attnum > 0");
};
is($types->('orders'), 'id bigint, is_paid boolean, status character varying(20), flags bigint, is_flags text, at timestamp with time zone, total amount',
	'the most specific pattern counts');
is($types->('items'), 'id integer, is_new boolean, status text, code uuid', 'for every table');
is($postgres->psql("select string_agg(attname, ',' order by attnum) from pg_attribute where attrelid = 'shop.orders'::regclass and attidentity <> ''"), 'id', 'an identity stays');
is($postgres->psql("select count(*) from pg_attrdef where adrelid = 'shop.orders'::regclass"), '0', 'a column of another type has no default');
for (['odd', qr/Column "flags": option "column_types" \("shop\.odd\.flags"\) gives it the type integer, which cannot hold every value of blob/],
	['bad_key', qr/may take two different values of the key for the same/], ['narrow', qr/gives it the type integer, which cannot hold every value of bigint/])
{
	my ($table, $reason) = @$_;
	is($pipeline->table_status($table, 'state'), 'stopped', "table $table is kept out");
	like($pipeline->table_status($table, 'last_error_detail'), $reason, "with the reason");
	like($pipeline->table_status($table, 'last_error_hint'), qr/Change option "column_types"/, 'and the remedy');
}

$source->sql(q{insert into shop.orders values (3, 1, 'sent', 9, 4, '2021-01-02 03:04:05', 99.99)}, q{insert into shop.items values (3, 0, 'old', 'fedcba9876543210')});
$pipeline->wait_for_catchup;
is($postgres->psql('select id, is_paid, status, flags, is_flags, at, total from shop.orders order by id'),
	"1|t|open|7|3|2020-01-02 03:04:05.678+00|10.25\n2|f|||||\n3|t|sent|9|4|2021-01-02 03:04:05+00|99.99", 'values of snapshot and stream');
is($postgres->psql('select id, is_new, status, code from shop.items order by id'),
	"1|t|new|30313233-3435-3637-3839-616263646566\n2|||\n3|f|old|66656463-6261-3938-3736-353433323130", 'in the other table too');

# a value that does not fit the narrower type stops the table
$source->sql(q{update shop.orders set status = 'much too long for twenty characters' where id = 1});
$pipeline->wait_for_table_state('orders', 'stopped');
is($pipeline->table_status('orders', 'last_error_sqlstate'), '22001', 'a value that does not fit stops the table');

done_testing();

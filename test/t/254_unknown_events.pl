# B38: an event of a type that nobody knows, as newer servers may write it (MariaDB 12.3: parts of rows above 1 GB), ends the worker with
# its number and position; nothing behind it is applied, and nothing of its transaction.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::FakeServer;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $fake = CdcBridge::FakeServer->new(upstream => $source, seed => 1);
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1)', 'create table shop.other (id int primary key, v int)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { host => $fake->host, port => $fake->port })->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

for my $round (1 .. 3)
{
	my $ids = sub { return $postgres->psql('select coalesce(string_agg(id::text, $$,$$ order by id), $$$$) from shop.t where id > ' . 10 * $round); };
	# rows of the transaction that has the event: the other table's rows go before them
	$fake->behave('dump_type_255_rows');
	$source->sql('begin', "insert into shop.other values ($round, 0)", "insert into shop.t values (10 * $round + 1, 1), (10 * $round + 2, 2)", "update shop.t set v = v + 1 where id = 1", 'commit',
		"insert into shop.t values (10 * $round + 3, 3)");
	ok(poll_until(sub { return $pipeline->status('last_error_detail') =~ /event type 255 is not known/; }), "B38: the type is told ($round)") or diag($pipeline->describe);
	cmp_ok($fake->acted, '>', 0, 'the event was there');
	is($pipeline->status('last_error_sqlstate'), '0A000', 'B38: as something that is not supported');
	is($pipeline->status('last_error'), 'binary log of source server "shop" holds what is not supported', 'B38: which the message says');
	like($pipeline->status('last_error_position'), qr/^bl\.\d+:\d+$/, 'B38: with its position');
	like($pipeline->status('last_error_hint'), qr/anew => true/, 'B38: and the way past it');
	is($ids->(), '', 'B38: nothing of its transaction, and nothing behind it, is applied');
	is($postgres->psql("select count(*) from shop.other where id = $round"), '0', 'B38: nor what its transaction did before it');
	is($postgres->psql('select count(*) from pg_stat_cdc_table where state <> $$streaming$$'), '0', 'B38: no table is to blame');
	$fake->behave('honest');
	$pipeline->start if $pipeline->state eq 'failed';
	$pipeline->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same("B38: a log without it is followed from there on ($round)");
}

done_testing();

# cdc_verify() while a source transaction is in the binary log, streamed and applied here, and not visible at the source yet: a
# commit that waits for a semi-synchronous replica. The rows differ for as long as it waits, and are no difference.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::HeldCommit;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use Test::More;

my $source = CdcBridge::HeldCommit->source;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v varchar(20) not null)',
	'insert into shop.t values ' . join(', ', map { "($_, 'old')" } 1 .. 1000));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"batch_max_ms": 0}')->setup;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$postgres->psql(q{update shop.t set v = 'spoilt' where id = 900});

my $held = CdcBridge::HeldCommit->new($source, q{update shop.t set v = 'new' where id = 10}, 'delete from shop.t where id = 500',
	q{insert into shop.t values (3000, 'new')});
ok($postgres->poll('select count(*) from shop.t where id = 3000', '1'), 'the transaction is applied here');
is($source->query_value('select count(*) from shop.t where id = 3000'), 0, 'and not visible at the source');

my $request = $postgres->psql(q{select cdc_verify('shop_in')});
ok($postgres->poll("select count(*) from pg_stat_cdc_verify where request = $request and state = 'running'", '1'), 'the comparison has begun');
# here the passing of time is the point: many a look would have come to its verdict by now
poll_until(sub { return 0 }, 3);
is($postgres->psql("select state from pg_stat_cdc_verify where request = $request"), 'running', 'it waits for the source');
is($source->query_value('select count(*) from shop.t where id = 3000'), 0, 'which still does not show the transaction');
$held->release;

is($pipeline->verify_result($request), "t: 0 missing, 0 extra, 1 different, 0 unsettled, done\nt: different {900} {v}\n", 'only what was planted is found');

done_testing();

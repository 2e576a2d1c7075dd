# cdc_verify() of a table that somebody has locked at the source: each worker gets no answer and ends. The table is given up after
# ten of them, the others are compared; cancelling ends a comparison that waits. When the lock is gone all is well again.
# cells: mariadb-15
# takes: 26 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1), (2, 2)") } qw(locked other));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { query_timeout => 1 })->setup;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;

my $locker = $source->connect;
$locker->do('lock tables shop.locked write');

my $request = $postgres->psql(q{select cdc_verify('shop_in', '{shop.locked}')});
ok($postgres->poll("select count(*) from pg_stat_cdc_verify where request = $request and state = 'running'", '1'), 'the comparison has begun');
$postgres->psql("select cdc_cancel_verify($request)");
is($postgres->psql("select state from pg_stat_cdc_verify where request = $request"), 'cancelled', 'it can be cancelled');

my $found = $pipeline->verify;
is($found, "locked: 0 missing, 0 extra, 0 different, 0 unsettled, failed: Workers began with the table 10 times and ended with an error each time; the server's log says which.\n",
	'the locked table is given up, the other one is compared');
is($postgres->psql("select state from pg_stat_cdc_verify where request = $pipeline->{verify_request} and source_table = 'other'"), 'done', 'which is done');
is($pipeline->state, 'streaming', 'the stream has gone on');
like($postgres->psql('select last_error from pg_stat_cdc_pipeline'), qr/lost connection to source server/, 'the last error is shown');

$locker->do('unlock tables');
is($pipeline->verify, '', 'without the lock both are compared');

done_testing();

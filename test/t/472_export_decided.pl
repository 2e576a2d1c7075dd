# What a pipeline has read and not shipped is decided: a crash that takes the slot back, and other options afterwards, do not bring it.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "cdc_bridge.autostart = off\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"actions": "insert", "messages": true}')->setup;
$postgres->psql("create schema shop; create table shop.t (id int primary key, n int, filler text)");
$export->start->wait_for_state('streaming');
$postgres->psql("insert into shop.t select i, 0, repeat('x', 500) from generate_series(1, 2000) i");
$export->wait_for_all;

# the slot on disk stays here; the row of the catalog goes on
$postgres->psql('checkpoint');
my $before = $export->status('confirmed_lsn');
$postgres->psql("update shop.t set n = 1");
$postgres->psql("update shop.t set n = 2");
$export->wait_for_all;
my $decided = $postgres->psql('select pg_current_wal_lsn()');
ok($postgres->poll("select confirmed_lsn > '$before' and export.confirmed_lsn > '$decided'::pg_lsn - 2000000 from pg_stat_cdc_export export", 't'), 'updates were read and not shipped');
my $row = $postgres->psql('select confirmed_lsn from cdc_bridge.export_state');
$postgres->kill9;
$postgres->start;
my $slot = $postgres->psql('select confirmed_flush_lsn from pg_replication_slots');
is($postgres->psql("select '$slot'::pg_lsn < '$row'::pg_lsn"), 't', 'the crash has taken the slot back');
is($export->status('state'), 'waiting', 'nothing is decoded yet');
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"actions": "insert,update,delete,truncate"}')});
$export->start->wait_for_state('streaming');
$postgres->psql("update shop.t set n = 3 where id = 7; select pg_logical_emit_message(false, 'mine', 'hello')");
$export->wait_for_all;
my @updates = grep { ($_->{op} // '') eq 'u' } $export->records;
my @old = grep { $_->{after}{n} == 1 } @updates;
is(scalar(@old), 0, 'what was passed over before does not come after all');
is(scalar(grep { $_->{after}{n} == 3 } @updates), 1, 'what comes now is shipped');
is(scalar(grep { ($_->{op} // '') eq 'm' } $export->records), 1, 'and a message');

# what the sink has, and the slot has forgotten, neither
$postgres->psql('checkpoint');
$postgres->psql("insert into shop.t values (3000, 1, 'once')");
$export->wait_for_all;
$postgres->kill9;
$postgres->start;
$export->start->wait_for_state('streaming')->wait_for_all;
is(scalar(grep { ($_->{op} // '') eq 'c' && $_->{after}{id} == 3000 } $export->records), 1, 'an insert that the slot gives again comes once');

done_testing();

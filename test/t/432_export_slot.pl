# The slot of an outgoing pipeline: it holds back no log that nobody needs, and when it is lost, moved or made anew, that is told.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "max_wal_size = 64MB\nmin_wal_size = 32MB\n");
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
$postgres->psql('create schema shop; create table shop.t (id int primary key, v text); create table public.other (id int, v text)');
$export->start->wait_for_state('streaming');
$postgres->psql("insert into shop.t values (1, 'first')");
$export->wait_for_all;

# ---- others write, and nothing that is shipped happens

my $confirmed = $export->status('confirmed_lsn');
$postgres->psql("insert into public.other select i, repeat('x', 1000) from generate_series(1, 20000) i");
$export->wait_for_all;
ok(poll_until(sub {
	$postgres->psql('checkpoint');    # a snapshot of running transactions, up to which the slot can forget
	return $postgres->psql("select pg_current_wal_lsn() - restart_lsn < 4000000 from pg_replication_slots where slot_name = '" . $export->status('slot_name') . "'") eq 't';
}), 'P7: tables that are not shipped do not hold back the log');
isnt($export->status('confirmed_lsn'), $confirmed, 'P7: the slot was confirmed beyond the last transaction of the sink');
$export->stop->start->wait_for_state('streaming');
$postgres->psql("insert into shop.t values (2, 'second')");
$export->wait_for_all;
$export->is_replayed('shop', 't', 'id', 'and it goes on after that');

# ---- over a crash, after which the slot may stand where it stood before

my $before = $export->status('durable_lsn');
$postgres->kill9;
$postgres->start;
$export->wait_for_state('streaming');
is($postgres->psql("select '" . $export->status('durable_lsn') . "'::pg_lsn >= '$before'::pg_lsn"), 't', 'P13: the position of the sink does not step back');
$postgres->psql("insert into shop.t values (3, 'third')");
$export->wait_for_all;
$export->is_replayed('shop', 't', 'id', 'P13: nothing comes twice');

# ---- moved by somebody else, and made anew under the same name

my $slot = $export->status('slot_name');
my $forward = sub {
	$export->stop;
	$postgres->psql("insert into shop.t values ($_[0], 'while stopped')");
	$postgres->psql($_[1]);
	$export->start->wait_for_state('failed');
	return;
};
$forward->(4, "select pg_replication_slot_advance('$slot', pg_current_wal_lsn())");
is($export->status('last_error_sqlstate'), 'YC001', 'P11: a slot that somebody moved on is told');
like($export->status('last_error_detail'), qr/stands at .* and the pipeline has only come to .*: it was moved on, or made anew/, 'P11: and where it stands');
like($export->status('last_error_hint'), qr/not in the sink/, 'and what that means');
$export->drop;
ok($postgres->poll("select count(*) from pg_replication_slots", '0'), 'its slot goes with it');

$export->{name} = 'again';
$export->start->wait_for_state('streaming');
$slot = $export->status('slot_name');
$forward->(5, "select pg_drop_replication_slot('$slot'); insert into shop.t values (50, 'lost'); select pg_create_logical_replication_slot('$slot', 'cdc_bridge')");
like($export->status('last_error_detail'), qr/moved on, or made anew/, 'P11: a slot that was dropped and made anew is told');
$export->stop;
$postgres->psql("select pg_drop_replication_slot('$slot')");
$export->start->wait_for_state('failed');
like($export->status('last_error_detail'), qr/no slot "\Q$slot\E" any more; the sink has everything up to/, 'a slot that is gone is told');
$export->stop;
$postgres->psql("select pg_create_logical_replication_slot('$slot', 'test_decoding')");
$export->start->wait_for_state('failed');
like($export->status('last_error_detail'), qr/of another kind, plugin or database/, 'and one that is not ours');
$postgres->psql("select pg_drop_replication_slot('$slot')");
$export->drop;

# ---- given up by the server

$export->{name} = 'invalidated';
$export->start->wait_for_state('streaming');
$export->stop;
$postgres->psql("alter system set max_slot_wal_keep_size = '1MB'; ");
$postgres->psql('select pg_reload_conf()');
ok(poll_until(sub {
	$postgres->psql("insert into public.other select i, repeat('x', 1000) from generate_series(1, 20000) i; select pg_switch_wal(); checkpoint");
	return $postgres->psql("select wal_status from pg_replication_slots where slot_name = '" . $export->status('slot_name') . "'") eq 'lost';
}), 'the server gives the slot up');
$export->start->wait_for_state('failed');
is($export->status('last_error_sqlstate'), 'YC001', 'P9: told');
like($export->status('last_error_detail'), qr/The server has given up slot/, 'P9: and who did it');
$postgres->psql("alter system reset max_slot_wal_keep_size; ");
$postgres->psql('select pg_reload_conf()');
$export->drop;

# ---- a limit of its own

$export->{name} = 'limited';
$export->{options} = '{"slot_max_mb": 10}';
$export->start->wait_for_state('streaming');
$slot = $export->status('slot_name');
$export->stop;
$postgres->psql("insert into public.other select i, repeat('x', 1000) from generate_series(1, 20000) i");
ok($postgres->poll("select count(*) from pg_replication_slots where slot_name = '$slot'", '0'), 'a stopped pipeline whose slot holds back more than slot_max_mb loses it');
like($postgres->log_text, qr/WARNING:  the replication slot of pipeline "limited" was given up/, 'with a warning');
$export->start->wait_for_state('failed');
is($export->status('last_error_sqlstate'), 'YC001', 'and says so when it is started');
$export->drop;

# ---- settings

$postgres->append_conf("wal_level = replica\nmax_wal_senders = 0");
$postgres->restart;
$export->{name} = 'settings';
delete $export->{options};
$export->start->wait_for_status('last_error_sqlstate', qr/^53400$/);
like($export->status('last_error'), qr/logical decoding needs "wal_level" to be "logical"/, 'P48: wal_level');
like($export->status('last_error_hint'), qr/ALTER SYSTEM SET wal_level = 'logical'/, 'P48: and what to run');
like($postgres->psql("select detail from cdc_check_pipeline('settings') where status = 'error'"), qr/wal_level/, 'P48: cdc_check_pipeline says it too');

done_testing();

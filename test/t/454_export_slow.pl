# cells: pg15 pg18
# What takes long: a transaction that holds the log back is named, a sink that takes nothing for long is not cut off, a large transaction of wide
# rows takes no memory.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use IO::Handle;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "max_prepared_transactions = 5\nwal_sender_timeout = 1s\nlogical_decoding_work_mem = 1MB\nshared_buffers = 16MB\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"format": "json"}')->setup;
my $columns = join(', ', map { "column_$_ int not null default $_" } 1 .. 60);
$postgres->psql("create schema shop; create table shop.t (id int primary key, v text); create table public.other (id int); create table shop.wide (id int primary key, $columns);
	alter table shop.wide replica identity full; create database elsewhere; create role reader login; grant pg_monitor to reader");
$export->start->wait_for_state('streaming');

# ---- P8
sub held { return $postgres->psql("select coalesce(held_by, '') from pg_stat_cdc_export"); }
sub check { return $postgres->psql("select status || ': ' || detail || ' ' || coalesce(hint, '') from cdc_check_pipeline('shop_out') where \"check\" = 'slot'"); }
is(held(), '', 'P8: nothing is held back');
like(check(), qr/^ok: Nothing keeps slot "cdc_\d+_\d+" from moving on/, 'P8: cdc_check_pipeline says so');
open(my $session, '|-', "'$postgres->{bindir}/psql' -X -q -h '$postgres->{dir}' -p $postgres->{port} -U postgres -d elsewhere >/dev/null 2>&1") or die "psql: $!";
$session->autoflush(1);
print $session "begin; create table open (id int);\n";
$postgres->poll("select count(*) from pg_stat_activity where datname = 'elsewhere' and backend_xid is not null and state = 'idle in transaction'", '1') or die 'no transaction is open';
my ($pid, $xid) = split(/\|/, $postgres->psql("select pid, backend_xid from pg_stat_activity where datname = 'elsewhere' and backend_xid is not null"));
my $grow = sub { $postgres->psql("insert into shop.t values ((select coalesce(max(id), 0) + 1 from shop.t), 'x'); checkpoint"); $export->wait_for_all; return; };
ok(poll_until(sub { $grow->(); return held() =~ /^transaction $xid of process $pid, open since \d{4}-/; }), 'P8: a transaction that is open for long, also in another database, is named') or diag($export->describe);
like($postgres->psql('select held_by from pg_stat_cdc_export', user => 'reader'), qr/process $pid/, 'P8: to who may see the pipeline');
like(check(), qr/^warning: The log is held back by transaction $xid of process $pid, open since .* SELECT pg_terminate_backend\($pid\) ends it/, 'P8: and what to do');
$postgres->psql("begin; insert into public.other values (1); prepare transaction 'it''s forgotten'");
$postgres->psql("select pg_terminate_backend($pid)");
close($session);
ok(poll_until(sub { $grow->(); return held() =~ /^prepared transaction 'it''s forgotten' \(\d+\) of \d{4}-/; }), 'P8: so is one that is prepared') or diag($export->describe);
like(check(), qr/ROLLBACK PREPARED 'it''s forgotten'/, 'P8: and what to do');
my $before = $export->status('restart_lsn');
$postgres->psql("rollback prepared 'it''s forgotten'");
ok(poll_until(sub { $grow->(); return held() eq '' && $postgres->psql("select restart_lsn > '$before' from pg_stat_cdc_export") eq 't'; }), 'P8: then the log is let go');

# ---- P47
my $worker = $export->status('pid');
kill('STOP', $worker);    # as a write to the sink that takes long
$postgres->psql("insert into shop.t select i, 'while it hung' from generate_series(1000, 1099) i");
my $until = $postgres->psql("select clock_timestamp() + interval '3 seconds'");    # three times wal_sender_timeout
$postgres->poll("select clock_timestamp() > '$until'");
kill('CONT', $worker);
$export->wait_for_all;
is($export->status('pid'), $worker, 'P47: a sink that takes nothing for longer than wal_sender_timeout is not cut off');
is($export->status('failures'), '0', 'P47: nothing failed');
is(scalar(grep { $_->{op} eq 'insert' && $_->{row}{v} eq 'while it hung' } $export->records), 100, 'P47: all of it arrives, once');
is($postgres->psql('select count(*) from pg_stat_replication'), '0', 'P47: as there is no sender process');

# ---- P6
sub peak { return slurp("/proc/$worker/status") =~ /^VmHWM:\s+(\d+) kB/m ? $1 : die 'no VmHWM'; }
$postgres->psql('insert into shop.wide (id) select i from generate_series(1, 2000) i');
$postgres->psql('update shop.wide set column_1 = 0');
$export->wait_for_all;
my ($small, $bytes, $changes) = (peak(), $export->status('bytes'), $export->status('changes'));
$postgres->psql('insert into shop.wide (id) select i from generate_series(10001, 50000) i; begin; update shop.wide set column_1 = 1; update shop.wide set column_2 = 2; commit');
$export->wait_for_all;
is($export->status('pid'), $worker, 'P6: the worker is the same');
is($export->status('changes') - $changes, 40_000 + 2 * 42_000, 'P6: a transaction that changes 84,000 wide rows under REPLICA IDENTITY FULL comes whole');
cmp_ok($export->status('bytes') - $bytes, '>', 100_000_000, 'P6: it is large');
cmp_ok(peak() - $small, '<', 32_000, 'P6: and takes no memory that a small one does not') or diag("$small kB before, " . peak() . ' kB after');

done_testing();

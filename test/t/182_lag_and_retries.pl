# What the view tells of a stream that does not come forward: the lag is never less than what waits, also right after a worker began anew with
# all of it still to come; and an error that comes again at the same place is counted, so that the attempts become fewer, although the source
# can be reached each time.
#
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
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
ok($postgres->poll(q{select lag = interval '0' from pg_stat_cdc_pipeline}, 't', 60), 'the lag is 0') or diag($pipeline->describe);

# 1. A lock on the target keeps a change out, longer than any look is late.
open(my $locker, '|-', "$postgres->{bindir}/psql", '-XAtq', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres') or die "psql: $!";
$locker->autoflush(1);
print $locker "begin; lock table shop.t in access exclusive mode;\n";
ok($postgres->poll(q{select count(*) from pg_locks where relation = 'shop.t'::regclass and mode = 'AccessExclusiveLock' and granted}, '1', 30), 'the target is locked');
$source->sql('insert into shop.t values (2, 2)');
my $waits = q{select count(*) from pg_stat_activity where backend_type = 'cdc_bridge ingest worker' and wait_event_type = 'Lock'};
ok($postgres->poll($waits, '1', 60), 'the stream waits');
ok($postgres->poll(q{select lag > interval '4 seconds' from pg_stat_cdc_pipeline}, 't', 60), 'the lag grows');

my $pid = $pipeline->status('ingest_pid');
$pipeline->stop->start;
my @lags;
ok(poll_until(sub {
	push @lags, $postgres->psql('select extract(epoch from lag) from pg_stat_cdc_pipeline');
	return $pipeline->status('ingest_pid') ne $pid && $postgres->psql($waits) eq '1';
}, 60), 'a new worker waits too') or diag($pipeline->describe);
push @lags, $postgres->psql('select extract(epoch from lag) from pg_stat_cdc_pipeline');
is_deeply([ grep { $_ < 4 } @lags ], [], 'the lag was never less meanwhile') or diag("lags: @lags");
print $locker "commit;\n\\q\n";
close($locker);
$pipeline->wait_for_catchup;
ok($postgres->poll(q{select lag = interval '0' from pg_stat_cdc_pipeline}, 't', 60), 'when the lock is gone the lag is 0 again') or diag($pipeline->describe);

# 2. An error of the kind that passes, at the same place each time.
$postgres->psql(<<'SQL');
create function public.no_room() returns trigger language plpgsql as $$ begin raise exception 'no room for %', new.v using errcode = 'disk_full'; end $$;
create trigger refuse before insert on shop.t for each row execute function public.no_room();
alter table shop.t enable always trigger refuse;
SQL
$source->sql('insert into shop.t values (3, 737373)');
ok($postgres->poll('select failures >= 4 from pg_stat_cdc_pipeline', 't', 60), 'failures in a row are counted') or diag($pipeline->describe);
is($pipeline->state, 'retrying', 'it tries again');
is($pipeline->status('last_error_sqlstate'), '53100', 'the error is told');
like($pipeline->status('last_error_detail'), qr/PL\/pgSQL function public\.\w+\(\)/, 'and who threw it');
cmp_ok($postgres->psql(q{select extract(epoch from max(lag)) from pg_stat_cdc_pipeline}), '>', 2, 'the lag is not that of the last attempt');
is(scalar(() = $postgres->log_text =~ /737373/g), 0, 'the value is in no log');
$postgres->psql('alter table shop.t disable trigger refuse');
$pipeline->start if $pipeline->state eq 'failed';
$pipeline->wait_for_state('streaming')->wait_for_catchup;
ok($postgres->poll('select failures from pg_stat_cdc_pipeline', '0', 60), 'after progress they are forgotten');
$pipeline->is_same('all has arrived');

done_testing();

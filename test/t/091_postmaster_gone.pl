# The postmaster is killed while workers are busy and will be for a long time: they notice, although they wait for nothing, and a new
# postmaster can start. A trigger of the target's takes its time with each row, without waiting either.
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
my @rows = map { "($_)" } 1 .. 20_000;
$source->sql('create database shop', 'create table shop.t (id int primary key)', 'insert into shop.t values ' . join(', ', @rows));
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id integer primary key);
create function public.dawdle() returns trigger language plpgsql as $$
begin
  if current_setting('cdc_test.dawdle', true) = 'on' then perform count(*) from generate_series(1, 500000); end if;
  return new;
end $$;
create trigger dawdle before insert or update on shop.t for each row execute function public.dawdle();
alter table shop.t enable always trigger dawdle;
SQL
my $dawdle = sub { my ($value) = @_; $postgres->psql("alter database postgres set cdc_test.dawdle = '$value'"); return; };
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"on_existing": "append"}')->setup;

# Kill the postmaster while a process of that kind is in the trigger, and begin again.
sub kill_while_busy
{
	my ($kind) = @_;
	my @pids;
	# it writes when it has its lock on the target
	poll_until(sub {
		@pids = split(/\n/, $postgres->psql("select distinct a.pid from pg_stat_activity a join pg_locks l using (pid)
			where a.backend_type = 'cdc_bridge $kind worker' and l.relation = 'shop.t'::regclass and l.mode = 'RowExclusiveLock'"));
		return @pids;
	}) or die "no $kind worker writes\n" . $pipeline->describe;
	my @all = split(/\n/, $postgres->psql("select pid from pg_stat_activity where pid <> pg_backend_pid()"));
	$postgres->kill9;
	# a process that is gone, or waits only for its parent, has no program any more
	ok(poll_until(sub { return !grep { defined readlink("/proc/$_/exe") } @pids; }), "the $kind worker ends when the postmaster is gone, although it is busy");
	ok(poll_until(sub { return !grep { defined readlink("/proc/$_/exe") } @all; }), 'and so does everybody else');
	kill('KILL', grep { defined readlink("/proc/$_/exe") } @all);
	$postgres->start;
	return;
}

$dawdle->('on');
$pipeline->start;
kill_while_busy('snapshot');
$dawdle->('off');
# who is here by now may still dawdle
$pipeline->stop->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_mirrored('the copy went on');

$dawdle->('on');
$pipeline->stop->start->wait_for_state('streaming');
$source->sql('insert into shop.t select id + 20000 from shop.t');
kill_while_busy('ingest');
$dawdle->('off');
$pipeline->stop->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_mirrored('and the stream');

done_testing();

# Positions are rows: a batch that is rolled back, followed at once by a crash, loses nothing, although commits are asynchronous
# and although from PostgreSQL 16 on a rolled-back transaction moves a replication origin forward.
# cells: mariadb-18 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_hot create_hot);
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new(conf => "wal_writer_delay = 10s\nwal_writer_flush_after = 1GB\n");
create_hot($source, 50);
$source->sql('create table shop.big (id int primary key, v varchar(100))');

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

# 1. A batch that an error undoes: a trigger here refuses one row for now, with an error of the kind that passes by itself, so that
# the pipeline tries again. It fires for the worker too.
$postgres->psql(<<'SQL');
create table public.gate (shut boolean);
insert into public.gate values (true);
create function public.refuse() returns trigger language plpgsql as $$
begin
  if new.n = 424242 and (select shut from public.gate) then raise exception 'not yet' using errcode = 'lock_not_available'; end if;
  return new;
end $$;
create trigger refuse before insert or update on shop.hot_int for each row execute function public.refuse();
alter table shop.hot_int enable always trigger refuse;
SQL
my $dbh = $source->connect;
srand(80);
change_hot($dbh, 50) for 1 .. 50;
$dbh->do(q{replace into shop.hot_int values (7, 424242, 'refused')});
change_hot($dbh, 50) for 1 .. 50;
eval { $pipeline->wait_for_status('last_error_sqlstate', qr/^55P03$/) } or fail("the refused row is told: $@");
like($pipeline->status('last_error_detail'), qr/PL\/pgSQL function public\.refuse\(\)/, 'the refused row is told as the error');
$postgres->kill9;
$postgres->start;
$postgres->psql('update public.gate set shut = false');
$postgres->psql(q{select cdc_start_pipeline('shop_in')});
$pipeline->wait_for_state('streaming')->wait_for_catchup;
is($postgres->psql('select count(*) from shop.hot_int where n = 424242'), $source->query_value('select count(*) from shop.hot_int where n = 424242'), 'the refused row arrived once it was let in');
$pipeline->is_same('a batch undone by an error, then a crash: nothing is lost');

# 2. A worker stopped in the middle of a large transaction, then a crash at once.
for my $round (1 .. 8)
{
	my $from = $round * 100_000;
	$source->sql('insert into shop.big select ' . $from . " + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, 'row' from "
		. join(' cross join ', map { '(select 0 d' . join('', map { " union all select $_" } 1 .. 9) . ") $_" } qw(a b c e)));
	$source->sql('update shop.big set v = repeat(v, 2) where id < 300000 and length(v) < 40', "delete from shop.big where id % 17 = $round");
	my $pid = '';
	poll_until(sub { $pid = $pipeline->status('ingest_pid'); return $pid; }) or die "no worker comes\n" . $pipeline->describe;
	# while it works on that
	poll_until(sub { return 0 }, rand(0.4));
	$postgres->try_psql("select pg_terminate_backend($pid)") if $pid;
	$postgres->kill9;
	$postgres->start;
	$pipeline->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same("round $round: worker stopped in a batch, then a crash") or last;
}

done_testing();

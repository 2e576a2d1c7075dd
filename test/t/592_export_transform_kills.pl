# Transforms and routes under random writes and copies, while worker and postmaster are killed at random moments: what the files lead to is what a view with the
# same expressions shows, each round. CDC_TEST_ROUNDS (default 6) and CDC_SEED choose; the seed is printed.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Writers;
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

my $rounds = $ENV{CDC_TEST_ROUNDS} // 6;
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed, $rounds rounds (again: CDC_SEED=$seed)");
srand($seed);

my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
my %projection = (
	item => [ "id, n, n * 2 AS twice, shop.mask(name) AS name, big", "n % 3 <> 0" ],
	pair => [ "a || '/' || b::text AS key, upper(v) AS v", undef ]);
my $options = JSON::PP->new->canonical->encode({
	snapshot_chunk_rows => 50, snapshot_workers => 1,
	routes => [ { source => 'shop.*', schema => 'lake' } ],
	transforms => [ (map { { tables => "shop.$_", projection => $projection{$_}[0], $projection{$_}[1] ? (filter => $projection{$_}[1]) : (), $_ eq 'pair' ? (key => ['key']) : () } } sort keys %projection) ] });
my $export = CdcBridge::Export->new(postgres => $postgres, options => $options)->setup;
$postgres->psql(<<'SQL');
create schema shop;
create schema lake;
create function shop.mask(t text) returns text language plpgsql immutable as $$ begin return left(t, 1) || length(t); end $$;
create table shop.item (id int primary key, n int not null, name text, big text);
alter table shop.item alter column big set storage external;
alter table shop.item replica identity full;
create table shop.pair (a text, b int, v text, unused text, primary key (a, b));
insert into shop.item select i, i, 'n' || i, repeat(md5(i::text), 80) from generate_series(1, 400) i;
insert into shop.pair select 'p' || i % 5, i, 'v', 'u' from generate_series(1, 400) i;
SQL
$postgres->psql("create view lake.$_ as select $projection{$_}[0] from shop.$_" . ($projection{$_}[1] ? " where $projection{$_}[1]" : '')) for sort keys %projection;
$export->start;

sub one_transaction
{
	my ($writer, $seq) = @_;
	my @sql = ('begin');
	for (1 .. 1 + int(rand(5)))
	{
		my ($i, $kind) = (1 + int(rand(500)), int(rand(7)));
		my $write = $kind == 0 ? "insert into shop.item values ($i, $i, 'new$i', repeat(md5('$i'), 80)) on conflict (id) do update set n = shop.item.n + 1"
		  : $kind == 1 ? "delete from shop.item where id = $i"
		  : $kind == 2 ? "update shop.item set id = id + 1000 where id = $i and not exists (select from shop.item where id = $i + 1000)"
		  : $kind == 3 ? "update shop.item set big = repeat(md5(n::text), 90), name = name || 'x' where id = $i"
		  : $kind == 4 ? "update shop.item set n = n + 1 where id between $i and $i + 20"
		  : $kind == 5 ? "insert into shop.pair values ('p' || $i % 5, $i, 'w', null) on conflict (a, b) do update set v = shop.pair.v || 'x'"
		  : "update shop.pair set a = 'q' where b = $i and a <> 'q' and not exists (select from shop.pair where b = $i and a = 'q')";
		push @sql, $kind % 3 == 0 ? ("savepoint s", $write, rand() < 0.5 ? 'rollback to s' : 'release s') : $write;
	}
	push @sql, rand() < 0.85 ? 'commit' : 'rollback';
	return join(";\n", @sql) . ";\n";
}

my $writers = CdcBridge::Writers->new(postgres => $postgres, seed => $seed, batch => 5, sql => \&one_transaction);
my %kill = (
	worker => sub { my $pid = $export->status('pid') or return; $postgres->kill9_process($pid); return; },
	postmaster => sub { $postgres->kill9; $postgres->start; return; },
	stopped => sub { $export->stop->start; return; });
my @victims = sort keys %kill;
for my $round (1 .. $rounds)
{
	$writers->start(2, $round * 10);
	$postgres->try_psql("select cdc_resync_table('shop_out', 'shop.item')") if $round % 2 == 0;
	poll_until(sub { return 0 }, rand(0.8));
	my $victim = $victims[ rand @victims ];
	$kill{$victim}->();
	poll_until(sub { return 0 }, rand(0.3));
	$writers->kill_all;
	poll_until(sub { return $postgres->accepts_connections }, 60) or die "PostgreSQL did not come back\n";
	$writers->end;
	my $ok = eval { $export->wait_for_state('streaming')->wait_for_all; 1 };
	ok($ok, "round $round: it comes back and catches up") or diag($@), last;
	my @ok = map { $export->is_replayed('lake', @$_, "round $round: $victim: $_->[0]") } [ 'item', 'id' ], [ 'pair', 'key' ];
	if (grep { !$_ } @ok) { diag("stopped at round $round of $rounds (again: CDC_SEED=$seed test/run tap 592)"); last; }
}
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

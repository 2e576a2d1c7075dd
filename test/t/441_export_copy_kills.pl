# Tables are copied again and again while sessions write, and worker or postmaster are killed at random moments: chunks and changes stand
# in the files once, in an order that leads to the tables.
# CDC_TEST_ROUNDS (default 3) and CDC_SEED choose; the seed is printed.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Writers;
use Test::More;
use Time::HiRes qw(time);

my $rounds = $ENV{CDC_TEST_ROUNDS} // 3;
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed, $rounds rounds (again: CDC_SEED=$seed)");
srand($seed);

my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"snapshot_chunk_rows": 4, "flush_max_ms": 20}', server_options => ", file_max_kb '2048'")->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.item (id int primary key, n int not null, big text);
alter table shop.item alter column big set storage external;
insert into shop.item select i, 0, repeat(md5(i::text), case when i % 20 = 0 then 80 else 1 end) from generate_series(1, 1500) i;
create table shop.pair (a int, b int, v text, primary key (a, b));
insert into shop.pair select i % 20, i, 'v' from generate_series(1, 1000) i;
-- so that a copy takes long enough to be met by a kill
create table shop.bulk (id int primary key);
insert into shop.bulk select generate_series(1, 8000);
SQL

sub one_transaction
{
	my $i = 1 + int(rand(1500));
	my @write = (
		"insert into shop.item values ($i, 1, repeat(md5('$i'), 20)) on conflict (id) do update set n = shop.item.n + 1",
		"delete from shop.item where id = $i",
		"update shop.item set id = (id + 750) % 1500 + 1 where id = $i and not exists (select from shop.item x where x.id = ($i + 750) % 1500 + 1)",
		"update shop.item set n = n + 1 where id between $i and $i + 20",
		"update shop.pair set v = v || 'x' where a = $i % 20 and length(v) < 30",
		"update shop.pair set a = (a + 10) % 20 where b = $i % 1000",
		rand() < 0.05 ? 'truncate shop.pair' : "insert into shop.pair select $i % 20, g, 'w' from generate_series(1, 50) g on conflict (a, b) do nothing",
	);
	return join(";\n", 'begin', (map { $write[ rand @write ] } 1 .. 1 + int(rand(4))), 'commit') . ";\n";
}

my $writers = CdcBridge::Writers->new(postgres => $postgres, seed => $seed, batch => 5, sql => \&one_transaction);

my %kill = (
	worker => sub { my $pid = $export->status('pid'); $postgres->kill9_process($pid) if $pid; },
	terminated => sub { my $pid = $export->status('pid'); $postgres->try_psql("select pg_terminate_backend($pid)") if $pid; },
	postmaster => sub { $postgres->kill9; $postgres->start; },
	stopped => sub { $export->stop->start; },
);
my @victims = sort keys %kill;
$export->start;
my $during = 0;
for my $round (1 .. $rounds)
{
	$writers->start(2, $round * 10);
	$export->wait_for_status('pid', qr/\d/);
	for (1 .. 2)
	{
		poll_until(sub { return $export->status('state') eq 'snapshot' }, 2);
		poll_until(sub { return 0 }, rand(0.2));
		my $victim = $victims[ ($round + $_) % @victims ];
		my $state = $export->status('state');
		$during++ if $state eq 'snapshot';
		note("round $round: $victim, $state");
		$kill{$victim}->();
		poll_until(sub { return $postgres->accepts_connections }, 60) or die "PostgreSQL did not come back\n";
	}
	$writers->end;
	my $ok = eval { $export->wait_for_state('streaming')->wait_for_all; 1 };
	ok($ok, "round $round: the copies come to their end") or diag($@), last;
	my @ok = map { $export->is_replayed('shop', @$_, "round $round: $_->[0]") } [ 'item', 'id' ], [ 'pair', 'a,b' ], [ 'bulk', 'id' ];
	if (grep { !$_ } @ok) { diag("stopped at round $round of $rounds (again: CDC_SEED=$seed test/run tap 441)"); last; }
	$postgres->psql("select cdc_resync_table('shop_out', 'shop.*')");
}
cmp_ok($during, '>', 0, "$during of " . 2 * $rounds . ' kills fell into a copy');
my @anew = grep { ($_->{op} // '') eq 't' && $_->{source}{snapshot} eq 'true' } $export->records;
cmp_ok(scalar(@anew), '>', $rounds, 'copies began anew, and said so');
is($postgres->psql('select count(*) from cdc_bridge.export_table where copies_asked < copies_begun'), '0', 'no copy but those that were asked for');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

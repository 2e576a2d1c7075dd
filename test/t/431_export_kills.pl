# Random transactions - subtransactions that are rolled back, large ones that are spilled, DDL in between, TOAST - while workers and the
# postmaster are killed at random moments: the files replayed are the tables, every committed change once, in the order of commits.
# CDC_TEST_ROUNDS (default 20) and CDC_SEED choose; the seed is printed.
# cells: pg15 pg17 pg18
# takes: 45 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Writers;
use IO::Handle;
use Test::More;
use Time::HiRes qw(time);

my $rounds = $ENV{CDC_TEST_ROUNDS} // 20;
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed, $rounds rounds (again: CDC_SEED=$seed)");
srand($seed);

my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
my $export = CdcBridge::Export->new(postgres => $postgres, server_options => ", file_max_kb '512'")->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.item (id int primary key, n int not null, name text, big text);
alter table shop.item alter column big set storage external;
create table shop.event (id bigint generated always as identity primary key, writer int, seq int, what text);
create table shop.wide (id int, part int, v text, primary key (part, id));
SQL
$export->start->wait_for_state('streaming');

# A session that writes until its input ends; it dies with the server, and another one takes its place.
sub one_transaction
{
	my ($writer, $seq) = @_;
	my @sql = ('begin');
	my $id = sub { return 1 + int(rand(200)); };
	for (1 .. 1 + int(rand(6)))
	{
		my ($i, $kind) = ($id->(), int(rand(9)));
		my $write = $kind < 3 ? "insert into shop.item values ($i, 1, 'n$i', repeat(md5('$i'), 80)) on conflict (id) do update set n = shop.item.n + 1"
		  : $kind == 3 ? "delete from shop.item where id = $i"
		  : $kind == 4 ? "update shop.item set id = id + 1000 where id = $i and not exists (select from shop.item where id = $i + 1000)"
		  : $kind == 5 ? "update shop.item set big = repeat(md5(n::text), 90) where id = $i"
		  : $kind == 6 ? "insert into shop.wide select g, $i % 7, 'w' from generate_series(1, 100) g on conflict (part, id) do update set v = shop.wide.v || 'x'"
		  : $kind == 7 ? "delete from shop.wide where part = $i % 7 and id % 3 = 0"
		  : "update shop.item set n = n + 1 where id between $i and $i + 20";
		push @sql, $kind % 3 == 0 ? ("savepoint s", $write, rand() < 0.5 ? 'rollback to s' : 'release s') : $write;
	}
	push @sql, "insert into shop.event (writer, seq, what) values ($writer, $seq, 'end')";
	push @sql, rand() < 0.85 ? 'commit' : 'rollback';
	return join(";\n", @sql) . ";\n";
}

my $writers = CdcBridge::Writers->new(postgres => $postgres, seed => $seed, batch => 5, sql => \&one_transaction);

my %kill = (
	worker => sub {
		my $pid = $export->status('pid') or return 'no worker was there';
		$postgres->kill9_process($pid);
		return '';
	},
	terminated => sub { my $pid = $export->status('pid') or return 'no worker was there'; $postgres->try_psql("select pg_terminate_backend($pid)"); return ''; },
	postmaster => sub { $postgres->kill9; $postgres->start; return ''; },
	stopped => sub { $export->stop->start; return ''; },
);
my @victims = sort keys %kill;
my $columns = 0;
for my $round (1 .. $rounds)
{
	$writers->start(2, $round * 10);
	poll_until(sub { return 0 }, rand(0.6));
	if ($round % 4 == 0)
	{
		# DDL among the writes; without a default, which no change would tell of rows that are there
		$columns++;
		$postgres->try_psql("set lock_timeout = '5s'; alter table shop.item add column extra$columns int");
	}
	my $victim = $victims[ rand @victims ];
	my $note = $kill{$victim}->();
	note("round $round: $victim $note");
	poll_until(sub { return 0 }, rand(0.3));
	$writers->kill_all;
	poll_until(sub { return $postgres->accepts_connections }, 60) or die "PostgreSQL did not come back\n";
	$writers->end;
	my $ok = eval { $export->wait_for_state('streaming')->wait_for_all; 1 };
	ok($ok, "round $round: it comes back and catches up") or diag($@), last;
	my @ok = map { $export->is_replayed('shop', @$_, "P12, P17, P20: round $round: $victim: $_->[0]") } [ 'item', 'id' ], [ 'event', 'id' ], [ 'wide', 'part,id' ];
	if (grep { !$_ } @ok) { diag("stopped at round $round of $rounds (again: CDC_SEED=$seed test/run tap 431)"); last; }
}

# commits in their order: positions of the changes' transactions never step back
my ($last, $back) = (0, 0);
for my $end (@{ $export->{ends} }) { $back++ if $end < $last; $last = $end; }
is($back, 0, 'P13: positions never step back');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

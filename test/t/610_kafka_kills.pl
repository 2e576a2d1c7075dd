# Random transactions - subtransactions that are rolled back, large ones that are split over Kafka transactions, DDL in between, TOAST - while worker,
# postmaster and broker are killed at random moments: who reads committed messages of three partitions a topic sees every committed change once, and in
# order for each key. CDC_TEST_ROUNDS (default 20) and CDC_SEED choose; the seed is printed.
# cells: pg15 pg18
# needs: kafka

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Kafka;
use CdcBridge::KafkaExport;
use CdcBridge::Postgres;
use CdcBridge::Writers;
use Test::More;
use Time::HiRes qw(time);

my $rounds = $ENV{CDC_TEST_ROUNDS} // 20;
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed, $rounds rounds (again: CDC_SEED=$seed)");
srand($seed);

my $kafka = CdcBridge::Kafka->new;
diag('Kafka ' . $kafka->version);
my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
# small transactions, so that many are split; short waits, so that a broker that is away ends the worker now and then
my $export = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, options => '{"topic_partitions": 3}',
	server_options => ", transaction_max_kb '64', request_timeout '2'")->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.item (id int primary key, n int not null, name text, big text);
alter table shop.item alter column big set storage external;
create table shop.event (id bigint generated always as identity primary key, writer int, seq int, what text);
create table shop.wide (id int, part int, v text, primary key (part, id));
insert into shop.wide select i, 100, 'before' from generate_series(1, 500) i;
SQL
$export->start->wait_for_state('streaming');

# A large value that an update of the key does not touch is not in the log, and the message of the new key cannot have it: it is touched.
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
		  : $kind == 4 ? "update shop.item set id = id + 1000, big = big || '' where id = $i and not exists (select from shop.item where id = $i + 1000)"
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
	broker => sub { $kafka->kill9; $writers->kill_all; poll_until(sub { return 0 }, rand(3)) if rand() < 0.3; $kafka->start; return ''; },
	stopped => sub { $export->stop->start; return ''; },
);
# each of them comes, in any order
my @victims;
my $columns = 0;
my $killed = 0;
for my $round (1 .. $rounds)
{
	@victims = sort { rand() <=> 0.5 } sort keys %kill unless @victims;
	$writers->start(2, $round * 10);
	poll_until(sub { return 0 }, rand(0.6));
	if ($round % 4 == 0)
	{
		# DDL among the writes; without a default, which no change would tell of rows that are there
		$columns++;
		$postgres->try_psql("set lock_timeout = '5s'; alter table shop.item add column extra$columns int");
	}
	my $victim = pop @victims;
	my $note = $kill{$victim}->();
	$killed++ if $note eq '';
	note("round $round: $victim $note");
	poll_until(sub { return 0 }, rand(0.3));
	$writers->kill_all;
	poll_until(sub { return $postgres->accepts_connections }, 60) or die "PostgreSQL did not come back\n";
	$writers->end;
	my $ok = eval { $export->wait_for_state('streaming')->wait_for_all; 1 };
	ok($ok, "round $round: it comes back and catches up") or diag($@), last;
	my @ok = map { $export->is_replayed('shop', @$_, "P12, P17, P38: round $round: $victim: $_->[0]") } [ 'item', 'id' ], [ 'event', 'id' ], [ 'wide', 'part,id' ];
	if (grep { !$_ } @ok) { diag("stopped at round $round of $rounds (again: CDC_SEED=$seed test/run tap 610)"); last; }
}
cmp_ok($killed, '>=', $rounds / 2, 'most of the time there was something to kill');
my %topics = $kafka->topics;
is_deeply([ @topics{ 'shop.item', 'shop.event', 'shop.wide', 'cdc_bridge_state' } ], [ 3, 3, 3, 1 ], 'topics have the partitions that were asked for');
my @states = $kafka->messages('cdc_bridge_state');
my ($last, $back, $split) = (0, 0, 0);
for my $state (map { $_->{value} } @states)
{
	my ($high, $low) = split(/\//, $state->{lsn});
	my $lsn = hex($high) * 2**32 + hex($low);
	$back++ if $lsn < $last;
	$last = $lsn;
	$split++ if $state->{split_end} ne '0/0';
}
is($back, 0, 'P13: positions never step back');
cmp_ok($split, '>', 0, "transactions were split ($split times)");
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();

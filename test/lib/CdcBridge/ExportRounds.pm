# Rounds of random transactions - subtransactions that are rolled back, large ones that are spilled, TOAST, changes of keys, DDL in between -
# while an outgoing pipeline's worker, its postmaster and whatever else the test names are killed; what its reader has is compared with the tables
# after each round.
package CdcBridge::ExportRounds;

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Writers;
use Test::More;
use Time::HiRes qw(time);

# How many rounds, and the seed: CDC_TEST_ROUNDS (default 20) and CDC_SEED choose; the seed is printed.
sub new
{
	my ($class) = @_;
	my $self = bless { rounds => $ENV{CDC_TEST_ROUNDS} // 20, seed => $ENV{CDC_SEED} // int(time()) }, $class;
	diag("seed $self->{seed}, $self->{rounds} rounds (again: CDC_SEED=$self->{seed})");
	srand($self->{seed});
	return $self;
}

sub make_tables
{
	my ($self, $postgres) = @_;
	$postgres->psql(<<'SQL');
create schema shop;
create table shop.item (id int primary key, n int not null, name text, big text);
alter table shop.item alter column big set storage external;
create table shop.event (id bigint generated always as identity primary key, writer int, seq int, what text);
create table shop.wide (id int, part int, v text, primary key (part, id));
insert into shop.wide select i, 100, 'before' from generate_series(1, 500) i;
SQL
	return;
}

sub _transaction
{
	my ($self, $writer, $seq) = @_;
	my @sql = ('begin');
	for (1 .. 1 + int(rand(6)))
	{
		my ($i, $kind) = (1 + int(rand(200)), int(rand(9)));
		# a large value that an update of the key does not touch is not in the log: who needs it has it touched
		my $touched = $self->{touches_large} ? q{, big = big || ''} : '';
		my $write = $kind < 3 ? "insert into shop.item values ($i, 1, 'n$i', repeat(md5('$i'), 80)) on conflict (id) do update set n = shop.item.n + 1"
		  : $kind == 3 ? "delete from shop.item where id = $i"
		  : $kind == 4 ? "update shop.item set id = id + 1000$touched where id = $i and not exists (select from shop.item where id = $i + 1000)"
		  : $kind == 5 ? "update shop.item set big = repeat(md5(n::text), 90) where id = $i"
		  : $kind == 6 ? "insert into shop.wide select g, $i % 7, 'w' from generate_series(1, 100) g on conflict (part, id) do update set v = shop.wide.v || 'x'"
		  : $kind == 7 ? "delete from shop.wide where part = $i % 7 and id % 3 = 0"
		  : "update shop.item set n = n + 1 where id between $i and $i + 20";
		push @sql, $kind % 3 == 0 ? ('savepoint s', $write, rand() < 0.5 ? 'rollback to s' : 'release s') : $write;
	}
	push @sql, "insert into shop.event (writer, seq, what) values ($writer, $seq, 'end')";
	push @sql, rand() < 0.85 ? 'commit' : 'rollback';
	return join(";\n", @sql) . ";\n";
}

# Ways to end the pipeline's worker that each test has; each returns why there was nothing to end, or ''.
sub _victims
{
	my ($postgres, $export) = @_;
	my $with_worker = sub {
		my ($end) = @_;
		return sub { my $pid = $export->status('pid') or return 'no worker was there'; $end->($pid); return ''; };
	};
	return (
		worker => $with_worker->(sub { $postgres->kill9_process($_[0]); }),
		terminated => $with_worker->(sub { $postgres->try_psql("select pg_terminate_backend($_[0])"); }),
		postmaster => sub { $postgres->kill9; $postgres->start; return ''; },
		stopped => sub { $export->stop->start; return ''; },
	);
}

# All rounds. Arguments: postgres, export; cases: for the tests' names; again: the test's number; victims: { name => sub } of further ones, called
# with the writers; touches_large: see above. Each victim comes, in any order. Returns how often there was something to end.
sub run
{
	my ($self, %args) = @_;
	my ($postgres, $export) = @args{qw(postgres export)};
	$self->{touches_large} = $args{touches_large};
	my $writers = CdcBridge::Writers->new(postgres => $postgres, seed => $self->{seed}, batch => 5, sql => sub { return $self->_transaction(@_); });
	my %end = (_victims($postgres, $export), %{ $args{victims} // {} });
	my @order;
	my ($columns, $ended) = (0, 0);
	for my $round (1 .. $self->{rounds})
	{
		@order = sort { rand() <=> 0.5 } sort keys %end unless @order;
		$writers->start(2, $round * 10);
		poll_until(sub { return 0 }, rand(0.6));
		if ($round % 4 == 0)
		{
			# DDL among the writes; without a default, which no change would tell of rows that are there
			$columns++;
			$postgres->try_psql("set lock_timeout = '5s'; alter table shop.item add column extra$columns int");
		}
		my $victim = pop @order;
		my $why_not = $end{$victim}->($writers);
		$ended++ if $why_not eq '';
		note("round $round: $victim $why_not");
		poll_until(sub { return 0 }, rand(0.3));
		$writers->kill_all;
		poll_until(sub { return $postgres->accepts_connections }, 60) or die "PostgreSQL did not come back\n";
		$writers->end;
		my $ok = eval { $export->wait_for_state('streaming')->wait_for_all; 1 };
		ok($ok, "round $round: it comes back and catches up") or diag($@), last;
		my @ok = map { $export->is_replayed('shop', @$_, "$args{cases}: round $round: $victim: $_->[0]") } [ 'item', 'id' ], [ 'event', 'id' ], [ 'wide', 'part,id' ];
		next unless grep { !$_ } @ok;
		diag("stopped at round $round of $self->{rounds} (again: CDC_SEED=$self->{seed} test/run tap $args{again})");
		last;
	}
	cmp_ok($ended, '>=', $self->{rounds} / 2, 'most of the time there was something to end');
	return $ended;
}

1;

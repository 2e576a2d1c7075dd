# Rounds of random writes in which the followed server dies and its replica takes over, to and fro, while workers and the postmaster are killed
# at random moments before and after, and tables are copied anew in between. After each round both sides are equal.
# CDC_TEST_ROUNDS / 10 rounds (default 2) and CDC_SEED choose; the seed is printed.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pair;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_hot change_shop create_hot create_shop fill_shop);
use Test::More;
use Time::HiRes qw(time);

my $rounds = int(($ENV{CDC_TEST_ROUNDS} // 20) / 10) || 1;
my $seed = $ENV{CDC_SEED} // int(time());
my $rows = 500;
diag("seed $seed, $rounds rounds (again: CDC_SEED=$seed)");

my $postgres = CdcBridge::Postgres->new;
my $pair = CdcBridge::Pair->new(args => ['--sync-binlog=1']);
create_shop($pair->first);
fill_shop($pair->first, $rows);
create_hot($pair->first, 20);
# rows of a table without a key show what comes twice
$pair->first->sql('create table shop.log (who int, what int)', 'set global max_binlog_size = 262144', "grant lock tables on shop.* to 'repl'\@'%'");
my $pipeline = $pair->pipeline(postgres => $postgres, options => '{"snapshot_chunk_rows": 20}');
srand($seed);

my %kill = (
	worker => sub {
		my ($status, $out) = $postgres->try_psql("select pid from pg_stat_activity where backend_type in ('cdc_bridge ingest worker', 'cdc_bridge snapshot worker')");
		my @workers = split(/\n/, $status == 0 ? $out : '');
		return 'no worker was there' unless @workers;
		$postgres->kill9_process($workers[ rand @workers ]);
		return 'one of ' . @workers;
	},
	postmaster => sub { $postgres->kill9; $postgres->start; return ''; },
	nobody => sub { return ''; },
);
my @victims = sort keys %kill;

sub write_to
{
	my ($source) = @_;
	$source->{seed} = int(rand(1 << 30));
	$source->start_writers(2, sub {
		my ($dbh, $number) = @_;
		change_shop($dbh, $rows);
		change_hot($dbh, 20);
		$dbh->do("insert into shop.log values ($number, 1 + floor(rand() * 10))");
		$dbh->do('delete from shop.log where what = 3 limit 1') if rand() < 0.2;
	});
	return;
}

sub kill_some
{
	my ($victim) = @_;
	select(undef, undef, undef, rand(0.5));    # the moment is what is random here
	my $what = $kill{$victim}->();
	poll_until(sub { return $postgres->accepts_connections; }) or die "the server does not come back\n";
	return "$victim $what";
}

$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables;
for my $round (1 .. $rounds)
{
	my ($old, $new) = ($pair->first, $pair->second);
	my @killed;
	write_to($old);
	$postgres->psql("select cdc_resync_table('shop_in', 'shop.$_')") for $round % 2 ? qw(orders customer) : ();
	push @killed, kill_some($victims[ rand @victims ]);
	$pair->fail_over;
	$old->stop_writers;
	write_to($new);
	push @killed, kill_some($victims[ rand @victims ]);
	$pair->wait_for_server($pipeline, $new);    # were the old one back before, it could be followed as the replica that it then is
	$old->start;
	$old->replicate_from($new);
	push @killed, kill_some($victims[ rand @victims ]);
	$new->stop_writers;
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$pipeline->is_same("round $round: " . join(', ', @killed)) or last;
}
is($postgres->psql("select string_agg(source_table || ': ' || last_error, ' ') from pg_stat_cdc_table where state <> 'streaming'"), '', 'no table is stopped');

done_testing();

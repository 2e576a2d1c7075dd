# A snapshot while 8 processes write (random inserts, updates, deletes, changes of keys, rollbacks, on small hot tables and on
# the shop) ends equal to the source. Nothing on the source is locked meanwhile.
# cells: mariadb-15 mariadb-18 mysql-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_hot change_shop create_hot create_shop fill_shop);
use CdcBridge::Source;
use Test::More;

my $rows = 4000;
# sync_binlog = 1: the time between the binary log and the engine's commit is longer, and with it the race that matters
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
create_shop($source);
fill_shop($source, $rows);
create_hot($source, 40);

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 20}')->setup;
my $seed = $ENV{CDC_SEED} // time();
note("seed $seed");
$source->{seed} = $seed;

for my $round (1 .. 2)
{
	$source->start_writers(8, sub { my ($dbh, $number) = @_; $number % 2 ? change_hot($dbh, 40) : change_shop($dbh, $rows); });
	$pipeline->start->wait_for_tables;
	note(sprintf('round %d: %s rows in %s chunks, %s changes streamed', $round,
			split(/\|/, $postgres->psql('select sum(rows_copied), sum(chunks) from pg_stat_cdc_snapshot')), $pipeline->status('changes')));
	# some more changes after the hand-over
	my ($file, $offset) = $source->binlog_position;
	CdcBridge::Env::poll_until(sub { my ($f, $o) = $source->binlog_position; return $f ne $file || $o > $offset + 100_000; }) or die "nobody writes\n";
	$source->stop_writers;
	$pipeline->wait_for_catchup;
	$pipeline->is_same("round $round: the snapshot under 8 writers equals the source");
	$pipeline->is_verified("round $round: cdc_verify() says so too");
	is($postgres->psql('select count(*) from cdc_bridge.snapshot_deleted'), 0, "round $round: no notes of the snapshot are left");
	is($pipeline->state, 'streaming', "round $round: it streams");
	$pipeline->stop->drop->drop_target;
}

done_testing();
